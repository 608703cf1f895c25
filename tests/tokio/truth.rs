//! A Tokio program that knows nothing of the recorder and counts its own polls: what d9 says of it must be the same.
//!
//!     tokio_truth SUBTEST [NUMBER]
//!
//! Prints `TRUTH key=value...`: polls of futures of its own, how many returned ready, panicked; tasks made, of them by a task;
//! blocking jobs that ran.  Every future is wrapped in `Counted`, and every task made through `task`, `local` or `job`.
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, LocalSet};

static POLLS: AtomicU64 = AtomicU64::new(0);
static READY: AtomicU64 = AtomicU64::new(0);
static PANICS: AtomicU64 = AtomicU64::new(0);
static TASKS: AtomicU64 = AtomicU64::new(0);
static NESTED: AtomicU64 = AtomicU64::new(0);
static JOBS: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

thread_local!(static DEPTH: std::cell::Cell<u32> = const { std::cell::Cell::new(0) });

struct Counted<F>(F);

struct Unfinished;
impl Drop for Unfinished {
    fn drop(&mut self) {
        DEPTH.with(|d| d.set(d.get() - 1));
        if std::thread::panicking() {
            PANICS.fetch_add(1, SeqCst);
        }
    }
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        POLLS.fetch_add(1, SeqCst);
        DEPTH.with(|d| d.set(d.get() + 1));
        let _unfinished = Unfinished;
        let r = unsafe { self.map_unchecked_mut(|s| &mut s.0) }.poll(cx);
        if r.is_ready() {
            READY.fetch_add(1, SeqCst);
        }
        r
    }
}

impl<F> Drop for Counted<F> {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, SeqCst);
    }
}

fn made() {
    TASKS.fetch_add(1, SeqCst);
    if DEPTH.with(|d| d.get()) > 0 {
        NESTED.fetch_add(1, SeqCst);
    }
}

fn task<F: Future + Send + 'static>(f: F) -> JoinHandle<F::Output>
where
    F::Output: Send + 'static,
{
    made();
    tokio::spawn(Counted(f))
}

fn local<F: Future + 'static>(f: F) -> JoinHandle<F::Output> {
    made();
    tokio::task::spawn_local(Counted(f))
}

fn job<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    tokio::task::spawn_blocking(move || {
        JOBS.fetch_add(1, SeqCst);
        f()
    })
}

fn threads(n: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(n).enable_all().build().unwrap()
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn all<T>(handles: Vec<JoinHandle<T>>) {
    for h in handles {
        h.await.unwrap();
    }
}

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

async fn for_ever() {
    std::future::pending::<()>().await
}

fn spin(d: Duration) {
    let end = Instant::now() + d;
    while Instant::now() < end {}
}

/// Returns pending so many times, having woken itself.
struct SelfWake(u32);
impl Future for SelfWake {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Keeps its waker from poll to poll and asks each time whether it is still the same.
struct SameWaker {
    kept: Option<Waker>,
    polls: u32,
    same: u32,
}
impl Future for SameWaker {
    type Output = (u32, u32);
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<(u32, u32)> {
        if self.kept.as_ref().map_or(false, |w| w.will_wake(cx.waker())) {
            self.same += 1;
        }
        self.polls += 1;
        if self.polls > 100 {
            return Poll::Ready((self.same, self.polls - 1));
        }
        let clone = cx.waker().clone();
        assert!(clone.will_wake(cx.waker()));
        self.kept = Some(cx.waker().clone());
        clone.wake();
        Poll::Pending
    }
}

/// A waker whose drop panics: its panic leaves Tokio's functions, and ours.
fn evil() -> std::mem::ManuallyDrop<Waker> {
    fn clone(_: *const ()) -> RawWaker {
        RawWaker::new(std::ptr::null(), &TABLE)
    }
    fn nothing(_: *const ()) {}
    fn drop(_: *const ()) {
        if !std::thread::panicking() {
            panic!("the waker's drop");
        }
    }
    static TABLE: RawWakerVTable = RawWakerVTable::new(clone, nothing, nothing, drop);
    std::mem::ManuallyDrop::new(unsafe { Waker::from_raw(clone(std::ptr::null())) })
}

fn caught(f: impl FnOnce()) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err()
}

// ---- subtests ------------------------------------------------------------------------------------------

fn yields(tasks: u64, times: u64) {
    threads(2).block_on(async move {
        all((0..tasks)
            .map(|_| {
                task(async move {
                    for _ in 0..times {
                        tokio::task::yield_now().await
                    }
                })
            })
            .collect())
        .await
    });
}

fn self_wake() {
    threads(2).block_on(async {
        all((0..50).map(|_| task(SelfWake(100))).collect()).await;
        let (same, of) = task(SameWaker { kept: None, polls: 0, same: 0 }).await.unwrap();
        assert_eq!(same, of);
    });
}

fn channels() {
    threads(2).block_on(async {
        let (tx, mut rx) = tokio::sync::mpsc::channel::<u64>(4);
        let sum = task(async move {
            let mut s = 0;
            while let Some(x) = rx.recv().await {
                s += x
            }
            s
        });
        let senders = (0..4)
            .map(|_| {
                let tx = tx.clone();
                task(async move {
                    for i in 0..1000 {
                        tx.send(i).await.unwrap()
                    }
                })
            })
            .collect();
        drop(tx);
        all(senders).await;
        assert_eq!(sum.await.unwrap(), 4 * 499500);
        let m = Arc::new(tokio::sync::Mutex::new(0u64));
        let adders = (0..8)
            .map(|_| {
                let m = m.clone();
                task(async move {
                    for _ in 0..200 {
                        *m.lock().await += 1;
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        all(adders).await;
        assert_eq!(*m.lock().await, 1600);
    });
}

fn timers() {
    threads(2).block_on(async {
        all((0..200).map(|i| task(async move { tokio::time::sleep(millis(i % 17)).await })).collect()).await;
        let slow = task(async { tokio::time::timeout(millis(5), for_ever()).await.is_err() });
        assert!(slow.await.unwrap());
    });
}

fn net() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    threads(2).block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let server = task(async move {
            let mut served = vec![];
            for _ in 0..10 {
                let (mut s, _) = listener.accept().await.unwrap();
                served.push(task(async move {
                    let mut b = [0u8; 64];
                    loop {
                        let n = s.read(&mut b).await.unwrap();
                        if n == 0 {
                            break;
                        }
                        s.write_all(&b[..n]).await.unwrap();
                    }
                }));
            }
            all(served).await
        });
        let clients = (0..10)
            .map(|_| {
                task(async move {
                    let mut s = tokio::net::TcpStream::connect(at).await.unwrap();
                    let mut b = [0u8; 5];
                    for _ in 0..100 {
                        s.write_all(b"hello").await.unwrap();
                        s.read_exact(&mut b).await.unwrap();
                    }
                })
            })
            .collect();
        all(clients).await;
        server.await.unwrap();
    });
}

fn blocking() {
    threads(2).block_on(async {
        all((0..20).map(|_| job(|| std::thread::sleep(millis(1)))).collect()).await;
        let in_place = || async {
            tokio::task::block_in_place(|| std::thread::sleep(millis(2)));
            tokio::task::yield_now().await;
        };
        all((0..10).map(|_| task(in_place())).collect()).await;
        task(async {
            tokio::task::block_in_place(|| {
                tokio::runtime::Handle::current().block_on(async {
                    task(async { tokio::task::yield_now().await }).await.unwrap();
                    job(|| ()).await.unwrap();
                })
            })
        })
        .await
        .unwrap();
        assert!(job(|| panic!("a job")).await.is_err());
        job(|| one_thread().block_on(async { all((0..5).map(|_| task(SelfWake(3))).collect()).await })).await.unwrap();
    });
}

fn local_set() {
    let rt = one_thread();
    let set = LocalSet::new();
    set.block_on(&rt, async {
        let n = std::rc::Rc::new(std::cell::Cell::new(0));
        let adders: Vec<_> = (0..30)
            .map(|_| {
                let n = n.clone();
                local(async move {
                    for _ in 0..10 {
                        tokio::task::yield_now().await;
                        n.set(n.get() + 1)
                    }
                })
            })
            .collect();
        all(adders).await;
        assert_eq!(n.get(), 300);
        let (tx, rx) = tokio::sync::oneshot::channel();
        let woken = local(async move { rx.await.unwrap() });
        std::thread::spawn(move || {
            std::thread::sleep(millis(5));
            tx.send(7).unwrap()
        });
        assert_eq!(woken.await.unwrap(), 7);
        for _ in 0..5 {
            local(for_ever());
        }
        tokio::task::yield_now().await;
    });
    drop(set);
    rt.block_on(async { all((0..30).map(|_| task(async { tokio::task::yield_now().await })).collect()).await });
}

fn abort() {
    threads(2).block_on(async {
        let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
        let idle: Vec<_> = (0..25)
            .map(|_| {
                let tx = tx.clone();
                task(async move {
                    tx.send(()).unwrap();
                    for_ever().await
                })
            })
            .collect();
        for _ in 0..25 {
            rx.recv().await.unwrap();
        }
        tokio::time::sleep(millis(20)).await; /* the last of them goes idle */
        for h in &idle {
            h.abort();
        }
        for h in idle {
            assert!(h.await.unwrap_err().is_cancelled());
        }
        let mut set = tokio::task::JoinSet::new();
        for _ in 0..10 {
            made();
            set.spawn(Counted(for_ever()));
        }
        tokio::time::sleep(millis(20)).await;
        set.shutdown().await;
    });
    // Never polled: nobody runs them before they are aborted.
    one_thread().block_on(async {
        let young: Vec<_> = (0..25).map(|_| task(for_ever())).collect();
        for h in &young {
            h.abort();
        }
        for h in young {
            assert!(h.await.unwrap_err().is_cancelled());
        }
    });
}

fn abort_running() {
    let rt = threads(2);
    rt.block_on(async {
        for _ in 0..5 {
            let (tx, rx) = tokio::sync::oneshot::channel();
            let h = task(async move {
                tx.send(()).unwrap();
                spin(millis(20));
                for_ever().await
            });
            rx.await.unwrap();
            h.abort();
            assert!(h.await.unwrap_err().is_cancelled());
        }
    });
}

fn panics() {
    threads(2).block_on(async {
        let mut n = 0;
        let some: Vec<_> = (0..20)
            .map(|i| {
                task(async move {
                    tokio::task::yield_now().await;
                    if i % 2 == 0 {
                        panic!("a task")
                    }
                })
            })
            .collect();
        for h in some {
            n += h.await.map_or_else(|e| e.is_panic() as u32, |_| 0);
        }
        assert_eq!(n, 10);
        struct Bad;
        impl Drop for Bad {
            fn drop(&mut self) {
                panic!("a drop")
            }
        }
        let h = task(async {
            let _bad = Bad;
            for_ever().await
        });
        tokio::time::sleep(millis(20)).await;
        h.abort();
        assert!(h.await.unwrap_err().is_panic());
    });
}

fn evil_wakers() {
    let w = evil();
    let poll_once = |h: &mut Pin<Box<JoinHandle<()>>>| assert!(h.as_mut().poll(&mut Context::from_waker(&w)).is_pending());
    let spawn_on = |rt: &Runtime, rx: tokio::sync::oneshot::Receiver<()>| {
        let _guard = rt.enter();
        Box::pin(task(async move {
            let _ = rx.await;
        }))
    };
    let turn = || async {
        for _ in 0..3 {
            tokio::task::yield_now().await
        }
    };
    for _ in 0..10 {
        // The waker is left in the task, and the handle is the last that has it.
        let rt = one_thread();
        let (tx, rx) = tokio::sync::oneshot::channel();
        let mut h = spawn_on(&rt, rx);
        poll_once(&mut h);
        rt.block_on(async {
            let _ = tx.send(());
            turn().await
        });
        println!("EVIL handle={}", caught(move || drop(h)));
        // The handle is gone, so the end of the poll frees the task and drops the waker.
        let (tx, rx) = tokio::sync::oneshot::channel();
        let mut h = spawn_on(&rt, rx);
        poll_once(&mut h);
        println!("EVIL early={}", caught(move || drop(h)));
        println!(
            "EVIL poll={}",
            caught(|| {
                rt.block_on(async {
                    turn().await;
                    let _ = tx.send(());
                    turn().await
                })
            })
        );
        println!("EVIL runtime={}", caught(move || drop(rt)));
    }
    // And the thread can go on.
    one_thread().block_on(async { all((0..10).map(|_| task(SelfWake(5))).collect()).await });
}

fn many_runtimes() {
    for _ in 0..5 {
        yields(5, 5);
    }
    let at_once: Vec<_> = (0..4).map(|_| std::thread::spawn(|| yields(10, 10))).collect();
    for t in at_once {
        t.join().unwrap();
    }
    threads(3).block_on(async {
        job(|| yields(3, 3)).await.unwrap();
        task(async { tokio::task::block_in_place(|| std::thread::spawn(|| yields(3, 3)).join().unwrap()) }).await.unwrap();
    });
}

fn shutdown() {
    for n in 1..4 {
        let rt = threads(n);
        rt.block_on(async {
            for _ in 0..7 {
                task(async { tokio::time::sleep(Duration::from_secs(100)).await });
            }
            task(async { tokio::task::yield_now().await }).await.unwrap();
        });
        drop(rt);
        let rt = one_thread();
        rt.block_on(async {
            for _ in 0..7 {
                task(for_ever());
            }
            tokio::task::yield_now().await;
        });
        drop(rt);
        // Never polled.
        let rt = one_thread();
        let _guard = rt.enter();
        task(for_ever());
        drop(_guard);
        drop(rt);
    }
}

fn no_tasks() {
    for _ in 0..3 {
        threads(3).block_on(async { tokio::time::sleep(millis(30)).await });
        one_thread().block_on(async { tokio::time::sleep(millis(5)).await });
        let plain = Builder::new_multi_thread().worker_threads(2).build().unwrap();
        plain.block_on(async { std::thread::sleep(millis(10)) });
    }
}

/// One worker: who is woken has to wait until the one that woke it comes back.
fn delay() {
    threads(1).block_on(async {
        let (tx, rx) = tokio::sync::oneshot::channel();
        let waiter = task(async { rx.await.unwrap() });
        tokio::time::sleep(millis(20)).await;
        task(async move {
            tx.send(()).unwrap();
            spin(millis(40));
        })
        .await
        .unwrap();
        waiter.await.unwrap();
    });
}

/// Threads and tasks that wake the same tasks at the same time, while others end.
fn storm() {
    threads(4).block_on(async {
        for _ in 0..20 {
            let wakers: Arc<Mutex<Vec<Waker>>> = Default::default();
            let mut waiting = vec![];
            for i in 0..50u32 {
                let (wakers, mut left) = (wakers.clone(), 20 + i);
                waiting.push(task(std::future::poll_fn(move |cx| {
                    if left == 0 {
                        return Poll::Ready(());
                    }
                    left -= 1;
                    wakers.lock().unwrap().push(cx.waker().clone());
                    if left % 3 == 0 {
                        cx.waker().wake_by_ref();
                    }
                    Poll::Pending
                })));
            }
            let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
            let outside: Vec<_> = (0..2)
                .map(|_| {
                    let (wakers, stop) = (wakers.clone(), stop.clone());
                    std::thread::spawn(move || {
                        while !stop.load(SeqCst) {
                            let some = std::mem::take(&mut *wakers.lock().unwrap());
                            for w in some {
                                w.wake_by_ref();
                                w.wake();
                            }
                        }
                    })
                })
                .collect();
            all(waiting).await;
            stop.store(true, SeqCst);
            for t in outside {
                t.join().unwrap();
            }
        }
        all((0..5000).map(|_| task(async { task(async {}).await.unwrap() })).collect()).await;
    });
}

/// Each worker has one of them, for they wait for each other.
fn workers() {
    for n in 1..4 {
        threads(n).block_on(async {
            let all_there = Arc::new(std::sync::Barrier::new(n));
            let meet = (0..n)
                .map(|_| {
                    let all_there = all_there.clone();
                    task(async move {
                        all_there.wait();
                    })
                })
                .collect();
            all(meet).await
        });
    }
}

/// Tasks of all kinds that are made, woken, aborted and dropped from everywhere at once, until there were `n` of them.
fn stress(n: u64) {
    use tokio::sync::oneshot::{channel, Sender};
    let rt = threads(4);
    let (post, letters) = std::sync::mpsc::channel::<Sender<()>>();
    let letters = Arc::new(Mutex::new(letters));
    let outside: Vec<_> = (0..2)
        .map(|_| {
            let letters = letters.clone();
            std::thread::spawn(move || loop {
                let next = letters.lock().unwrap().recv();
                match next {
                    Ok(tx) => drop(tx.send(())),
                    Err(_) => break,
                }
            })
        })
        .collect();
    let one = |i: u64, post: std::sync::mpsc::Sender<Sender<()>>| match i % 8 {
        0 => task(async {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await
        }),
        1 | 2 => task(async move {
            let (tx, rx) = channel();
            post.send(tx).unwrap();
            rx.await.unwrap()
        }),
        3 => task(async { task(SelfWake(2)).await.unwrap() }),
        4 => task(SelfWake(5)),
        5 => task(async {
            let (tx, rx) = channel();
            task(async move { drop(tx.send(())) });
            rx.await.unwrap()
        }),
        6 => task(async move { tokio::time::sleep(millis(i / 8 % 3)).await }),
        _ => task(async {
            for h in (0..3).map(|_| task(for_ever())) {
                h.abort();
            }
            tokio::task::yield_now().await
        }),
    };
    for round in 0.. {
        if TASKS.load(SeqCst) >= n {
            break;
        }
        rt.block_on(async {
            all((0..1000).map(|i| one(i, post.clone())).collect()).await;
            all((0..10).map(|_| job(|| ())).collect()).await;
        });
        if round % 10 == 0 {
            let short = threads(2);
            short.block_on(async {
                for i in 0..50 {
                    task(async move { tokio::time::sleep(millis(i)).await });
                }
                tokio::task::yield_now().await
            });
        }
    }
    drop(post);
    for t in outside {
        t.join().unwrap();
    }
}

/// What a yield costs, which is a wake and a poll: of one task on one thread, which never parks meanwhile.
fn rate(n: u64) {
    let per_yield = one_thread().block_on(async move {
        tokio::spawn(async move {
            let begin = Instant::now();
            for _ in 0..n {
                tokio::task::yield_now().await
            }
            begin.elapsed().as_nanos() as f64 / n as f64
        })
        .await
        .unwrap()
    });
    println!("RATE ns={per_yield:.2}");
}

/// What Tokio itself counts, in a build where it does.
#[cfg(tokio_unstable)]
fn metrics() {
    let rt = threads(3);
    rt.block_on(async {
        all((0..60)
            .map(|_| {
                task(async {
                    for _ in 0..20 {
                        spin(Duration::from_micros(50));
                        tokio::task::yield_now().await
                    }
                })
            })
            .collect())
        .await
    });
    std::thread::sleep(millis(200)); // a worker hands its counts in when it parks
    for i in 0..3 {
        println!("WORKER index={} polls={}", i, rt.metrics().worker_poll_count(i));
    }
}
#[cfg(not(tokio_unstable))]
fn metrics() {
    panic!("not in this build")
}

/// A task limits the memory of its program to what it needs, and needs it.
fn limited() {
    extern "C" {
        fn setrlimit(what: i32, to: *const [u64; 2]) -> i32;
    }
    one_thread().block_on(async {
        all((0..20).map(|_| task(SelfWake(5))).collect()).await;
        task(async {
            tokio::task::yield_now().await;
            assert_eq!(unsafe { setrlimit(2, &[7 << 20, u64::MAX]) }, 0);
            tokio::task::yield_now().await;
            println!("LIMITED {}", std::hint::black_box(vec![1u8; 5 << 20]).len());
            all((0..20).map(|_| task(SelfWake(5))).collect()).await;
        })
        .await
        .unwrap()
    });
}

/// Tasks in two rounds, the second in the memory of the first; each waits for a line before it is polled.
fn remade() {
    let mut lines = std::io::stdin().lines();
    one_thread().block_on(async {
        for _ in 0..2 {
            let tasks = (0..500).map(|_| task(async {})).collect();
            println!("READY");
            lines.next();
            all(tasks).await;
        }
    });
}

/// A poll that does not end: until a line comes.
fn stuck() {
    threads(1).block_on(async {
        all((0..20).map(|_| task(SelfWake(5))).collect()).await;
        task(async {
            println!("READY");
            std::io::stdin().lines().next();
        })
        .await
        .unwrap()
    });
}

async fn waits_for_a_timer() {
    tokio::time::sleep(Duration::from_secs(100)).await
}

async fn waits_for_a_message(mut rx: tokio::sync::mpsc::Receiver<()>) {
    rx.recv().await;
}

async fn waits_deep_down(rx: tokio::sync::mpsc::Receiver<()>) {
    let below = async move {
        let further = async move { waits_for_a_message(rx).await };
        further.await
    };
    below.await
}

async fn waits_for_one_of_two(rx: tokio::sync::oneshot::Receiver<()>) {
    tokio::select! {
        _ = waits_for_a_timer() => (),
        _ = rx => (),
    }
}

async fn waits_for_a_lock(lock: Arc<tokio::sync::Mutex<()>>) {
    drop(lock.lock().await)
}

async fn waits_here_then_there(rx: tokio::sync::oneshot::Receiver<()>) {
    rx.await.unwrap();
    waits_for_a_timer().await
}

/// Woken and polled again, while what it awaits has its waker still.
async fn waits_and_is_woken(waker: Arc<Mutex<Option<Waker>>>) {
    let mut timer = Box::pin(waits_for_a_timer());
    std::future::poll_fn(move |cx| {
        *waker.lock().unwrap() = Some(cx.waker().clone());
        timer.as_mut().poll(cx)
    })
    .await
}

/// Tasks that wait, each where its function's name says, until a line comes: one of each in this order.
fn awaits() {
    threads(2).block_on(async {
        let (kept, rx) = tokio::sync::mpsc::channel(1);
        let (kept_deep, deep) = tokio::sync::mpsc::channel(1);
        let (kept_one, one) = tokio::sync::oneshot::channel();
        let (first, then) = tokio::sync::oneshot::channel();
        let lock = Arc::new(tokio::sync::Mutex::new(()));
        let held = lock.clone().lock_owned().await;
        let waker: Arc<Mutex<Option<Waker>>> = Default::default();
        drop((
            task(waits_for_a_timer()),
            task(waits_for_a_message(rx)),
            task(waits_deep_down(deep)),
            task(waits_for_one_of_two(one)),
            task(waits_for_a_lock(lock)),
            task(waits_here_then_there(then)),
            task(waits_and_is_woken(waker.clone())),
        ));
        tokio::time::sleep(millis(20)).await;
        first.send(()).unwrap();
        for _ in 0..3 {
            let again = waker.lock().unwrap().clone();
            again.unwrap().wake();
            tokio::time::sleep(millis(20)).await;
        }
        println!("READY");
        std::io::stdin().lines().next();
        drop((kept, kept_deep, kept_one, held));
    });
}

/// Who waits for whose end, until a line comes: a task for a task, one for a job that runs, and one for a job that stands in the queue.
fn joins() {
    Builder::new_multi_thread().worker_threads(1).max_blocking_threads(1).enable_all().build().unwrap().block_on(async {
        let (tx, rx) = std::sync::mpsc::channel::<()>();
        let other = task(for_ever());
        let one = task(async move { other.await.unwrap() });
        let runs = job(move || rx.recv().is_err());
        let two = task(async move { assert!(runs.await.unwrap()) });
        while JOBS.load(SeqCst) < 1 {
            tokio::time::sleep(millis(1)).await;
        }
        let queued = job(|| ());
        let three = task(async move { queued.await.unwrap() });
        while POLLS.load(SeqCst) < 4 {
            tokio::time::sleep(millis(1)).await;
        }
        println!("READY");
        std::io::stdin().lines().next();
        drop(tx);
        all(vec![two, three]).await;
        one.abort();
        assert!(one.await.unwrap_err().is_cancelled());
        let mut h = task(async {});
        (&mut h).await.unwrap();
        let mut again = Box::pin(async { h.await.map_err(|_| ()) });
        std::future::poll_fn(|cx| {
            assert!(caught(|| assert!(again.as_mut().poll(cx).is_pending())), "an outcome that was read twice");
            Poll::Ready(())
        })
        .await;
    });
}

/// Lives on, and does the same for each line that it is given.
fn turned() {
    let rt = threads(2);
    rt.block_on(async { all((0..30).map(|_| task(SelfWake(10))).collect()).await });
    println!("READY");
    for _ in std::io::stdin().lines() {
        rt.block_on(async { all((0..30).map(|_| task(SelfWake(10))).collect()).await });
        println!("ROUND");
    }
}

fn main() {
    let which = std::env::args().nth(1).unwrap_or_default();
    std::panic::set_hook(Box::new(|_| {}));
    match which.as_str() {
        "yields" => yields(100, 300),
        "self_wake" => self_wake(),
        "channels" => channels(),
        "timers" => timers(),
        "net" => net(),
        "blocking" => blocking(),
        "local_set" => local_set(),
        "abort" => abort(),
        "abort_running" => abort_running(),
        "panics" => panics(),
        "evil_wakers" => evil_wakers(),
        "many_runtimes" => many_runtimes(),
        "shutdown" => shutdown(),
        "no_tasks" => no_tasks(),
        "delay" => delay(),
        "storm" => storm(),
        "rate" => rate(std::env::args().nth(2).unwrap().parse().unwrap()),
        "stress" => stress(std::env::args().nth(2).unwrap().parse().unwrap()),
        "metrics" => metrics(),
        "limited" => limited(),
        "remade" => remade(),
        "stuck" => stuck(),
        "turned" => turned(),
        "awaits" => awaits(),
        "joins" => joins(),
        "workers" => workers(),
        _ => panic!("no such subtest"),
    }
    println!(
        "TRUTH polls={} ready={} panics={} tasks={} nested={} jobs={} dropped={}",
        POLLS.load(SeqCst),
        READY.load(SeqCst),
        PANICS.load(SeqCst),
        TASKS.load(SeqCst),
        NESTED.load(SeqCst),
        JOBS.load(SeqCst),
        DROPPED.load(SeqCst)
    );
}
