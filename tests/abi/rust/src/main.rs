//! How a program on Tokio tells d9shim of its tasks: the runtime's hooks (cfg tokio_unstable) call the functions of d9.h.
//! Prints what a recording of it must hold.
mod d9;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;
use tokio::runtime::{worker_index, Builder, TaskMeta};
use tokio::sync::{mpsc, oneshot};

const RUNTIME: u32 = 1;
const ORDERS: u64 = 20;

/// What was done, under the names of the events.
#[derive(Default)]
struct Count {
    park: AtomicU64,
    task_spawn: AtomicU64,
    poll: AtomicU64,
    wake: AtomicU64,
    task_end: AtomicU64,
    ready: AtomicU64,
    app_span: AtomicU64,
    log: AtomicU64,
    counter: AtomicU64,
    custom: AtomicU64,
}

static COUNT: LazyLock<Count> = LazyLock::new(Count::default);
/// The tasks that live, and whether they were aborted.
static ALIVE: LazyLock<Mutex<HashMap<u64, bool>>> = LazyLock::new(Mutex::default);

fn add(which: fn(&Count) -> &AtomicU64) {
    which(&COUNT).fetch_add(1, Relaxed);
}

/// Tokio shows a task's id and keeps the number to itself.  Without an allocation: this runs at every poll.
fn number(id: tokio::task::Id) -> u64 {
    struct Digits(u64);
    impl std::fmt::Write for Digits {
        fn write_str(&mut self, s: &str) -> std::fmt::Result {
            self.0 = s.bytes().fold(self.0, |n, c| n * 10 + u64::from(c - b'0'));
            Ok(())
        }
    }
    let mut digits = Digits(0);
    std::fmt::write(&mut digits, format_args!("{id}")).ok();
    digits.0
}

fn me() -> u64 {
    tokio::task::try_id().map_or(0, number)
}

fn worker() -> u32 {
    worker_index().map_or(d9::NO_WORKER, |i| i as u32)
}

// ---- the runtime's hooks ----

fn on_spawn(meta: &TaskMeta<'_>) {
    ALIVE.lock().unwrap().insert(number(meta.id()), false);
    if let Some(d9) = d9::get() {
        let at = meta.spawned_at();
        let name = std::ffi::CString::new(format!("{}:{}", at.file(), at.line())).unwrap_or_default();
        d9.task_spawn(number(meta.id()), me(), RUNTIME, &name);
    }
    add(|c| &c.task_spawn);
}

fn on_before_poll(meta: &TaskMeta<'_>) {
    if let Some(d9) = d9::get() {
        (d9.poll_begin)(number(meta.id()), RUNTIME, worker());
    }
}

fn on_after_poll(_: &TaskMeta<'_>) {
    if let Some(d9) = d9::get() {
        (d9.poll_end)(d9::UNKNOWN);
    }
    add(|c| &c.poll);
}

fn on_terminate(meta: &TaskMeta<'_>) {
    let id = number(meta.id());
    // Tokio's own workers end here too, and nobody told of their beginning.
    let Some(aborted) = ALIVE.lock().unwrap().remove(&id) else {
        return;
    };
    if let Some(d9) = d9::get() {
        (d9.task_end)(id, if aborted { d9::CANCELLED } else { d9::READY });
    }
    add(|c| &c.task_end);
    if !aborted {
        add(|c| &c.ready);
    }
}

fn on_park() {
    if let Some(d9) = d9::get() {
        (d9.worker_park)(RUNTIME, worker());
    }
}

fn on_unpark() {
    if let Some(d9) = d9::get() {
        (d9.worker_unpark)();
    }
    add(|c| &c.park);
}

// ---- the program ----

fn say_order(kind: u32, id: u64) {
    let (delta, ratio, what) = (-(id as i64), id as f64 / 4.0, format!("box-{}", id % 100));
    let mut data = Vec::new();
    data.extend(id.to_ne_bytes());
    data.extend(delta.to_ne_bytes());
    data.extend(ratio.to_ne_bytes());
    data.extend(what.bytes());
    data.push(0);
    if let Some(d9) = d9::get() {
        d9.event(kind, &data);
    }
    add(|c| &c.custom);
    println!("CUSTOM name=order id={id} delta={delta} ratio={ratio} what={what}");
}

fn parse(id: u64) {
    let _span = d9::span(c"parse", id);
    std::hint::black_box((0..20_000u64).fold(id, |a, b| a.wrapping_mul(31) ^ b));
    add(|c| &c.app_span);
}

async fn order(kind: u32, id: u64, mut input: mpsc::Receiver<u64>, done: oneshot::Sender<()>) {
    while let Some(n) = input.recv().await {
        parse(n);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    say_order(kind, id);
    if let Some(d9) = d9::get() {
        d9.log_line(d9::INFO, c"order parsed");
    }
    add(|c| &c.log);
    done.send(()).ok();
}

async fn run(kind: u32) {
    let mut waiting = Vec::new();
    for id in 1..=ORDERS {
        let (input, output) = mpsc::channel(4);
        let (done, finished) = oneshot::channel();
        let task = number(tokio::spawn(order(kind, id, output, done)).id());
        for n in 0..3 {
            // Tokio has no hook for wakes; whoever sends knows whom it wakes.
            if let Some(d9) = d9::get() {
                (d9.wake)(task, me(), RUNTIME);
                d9.counter(c"sent", n);
            }
            add(|c| &c.wake);
            add(|c| &c.counter);
            input.send(n as u64).await.unwrap();
        }
        waiting.push(finished);
    }
    for finished in waiting {
        finished.await.unwrap();
    }
}

async fn abort_some() {
    for _ in 0..5 {
        let handle = tokio::spawn(std::future::pending::<()>());
        ALIVE.lock().unwrap().insert(number(handle.id()), true);
        tokio::task::yield_now().await;
        handle.abort();
        handle.await.unwrap_err();
    }
}

fn main() {
    let recorder = d9::get();
    let kind = recorder.map_or(0, |d9| d9.event_type(c"order", c"id:u64,delta:i64,ratio:f64,what:str"));
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .on_task_spawn(on_spawn)
        .on_before_task_poll(on_before_poll)
        .on_after_task_poll(on_after_poll)
        .on_task_terminate(on_terminate)
        .on_thread_park(on_park)
        .on_thread_unpark(on_unpark)
        .build()
        .unwrap();
    runtime.block_on(async move {
        tokio::spawn(async move {
            run(kind).await;
            abort_some().await
        })
        .await
        .unwrap()
    });
    drop(runtime);
    let c = &*COUNT;
    let n = |a: &AtomicU64| a.load(Relaxed);
    println!(
        "TRUTH recorder={} task_spawn={} poll={} ready={} wake={} task_end={} app_span={} log={} counter={} custom={} park={}",
        recorder.is_some() as u32, n(&c.task_spawn), n(&c.poll), n(&c.ready), n(&c.wake), n(&c.task_end), n(&c.app_span),
        n(&c.log), n(&c.counter), n(&c.custom), n(&c.park)
    );
}
