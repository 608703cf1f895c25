//! Requests that each need a value from a cache behind a parking_lot lock.  One of forty misses, and its task reads the value from a disk: with `held`
//! under the lock, with `free` before it takes it.  There are always more tasks to run than workers, so the lock alone makes those wait.
//! usage: lock_in_read held|free ASK DATA, two FIFOs: whoever reads ASK is the disk, and answers late.
use parking_lot::Mutex;
use std::fs::File;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

const TASKS: u64 = 12;
const REQUESTS: u64 = 100; // of a task
const MISSES: u64 = 40; // one in so many
const LOOK_UP: Duration = Duration::from_micros(300);


struct Shared {
    cache: Mutex<[u8; 512]>,
    ask: File,
    data: File,
    reads: AtomicU64,
    polls: AtomicU64,
}

/// Blocks the thread: what a Tokio worker must not do, least of all with a lock.
fn read_from_disk(s: &Shared) -> [u8; 512] {
    let mut block = [0u8; 512];
    s.reads.fetch_add(1, Relaxed);
    (&s.ask).write_all(b"?").unwrap();
    (&s.data).read_exact(&mut block).unwrap();
    block
}

fn compute(how_long: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < how_long {
        std::hint::spin_loop();
    }
}

/// To the end of the queue, where any worker finds it; Tokio's yield_now keeps it from the others while its worker is blocked.
async fn others_first() {
    let mut yielded = false;
    poll_fn(|cx| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

async fn task(number: u64, held: bool, s: Arc<Shared>) {
    s.polls.fetch_add(1, Relaxed);
    for request in 0..REQUESTS {
        let miss = (number * REQUESTS + request) % MISSES == MISSES / 2; // none among the last requests: then workers would be idle
        let before = (miss && !held).then(|| read_from_disk(&s));
        {
            let mut cache = s.cache.lock();
            if let Some(block) = before.or_else(|| miss.then(|| read_from_disk(&s))) {
                *cache = block;
            }
            compute(LOOK_UP);
        }
        compute(LOOK_UP);
        others_first().await;
        s.polls.fetch_add(1, Relaxed);
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let held = args[1] == "held";
    let (ask, data) = (File::options().write(true).open(&args[2]).unwrap(), File::open(&args[3]).unwrap());
    let s = Arc::new(Shared { cache: Mutex::new([0; 512]), ask, data, reads: AtomicU64::new(0), polls: AtomicU64::new(0) });
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
    rt.block_on(async {
        let all: Vec<_> = (0..TASKS).map(|number| tokio::spawn(task(number, held, s.clone()))).collect();
        for task in all {
            task.await.unwrap();
        }
    });
    println!("TRUTH tasks={TASKS} polls={} reads={}", s.polls.load(Relaxed), s.reads.load(Relaxed));
}
