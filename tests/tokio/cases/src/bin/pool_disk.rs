//! A runtime whose tasks tick every millisecond while its blocking pool writes to a disk: each job writes a block to a file and has it synced.
//! Counts its own polls and prints how long the slowest of them and the slowest job took.  usage: pool_disk FILE JOBS KIB
use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

static POLLS: AtomicU64 = AtomicU64::new(0);
static SLOWEST_NS: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicBool = AtomicBool::new(false);

struct Timed<F>(Pin<Box<F>>);

impl<F: Future> Future for Timed<F> {
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let t = Instant::now();
        let r = self.0.as_mut().poll(cx);
        SLOWEST_NS.fetch_max(t.elapsed().as_nanos() as u64, Relaxed);
        POLLS.fetch_add(1, Relaxed);
        r
    }
}

async fn tick() {
    while !DONE.load(Relaxed) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn store(path: &str, block: &[u8]) -> Duration {
    let t = Instant::now();
    let mut f = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    f.write_all(block).unwrap();
    f.sync_all().unwrap();
    t.elapsed()
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (path, jobs, kib) = (args[1].clone(), args[2].parse::<usize>().unwrap(), args[3].parse::<usize>().unwrap());
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let slowest = rt.block_on(async {
        let ticking: Vec<_> = (0..8).map(|_| tokio::spawn(Timed(Box::pin(tick())))).collect();
        let mut slowest = Duration::ZERO;
        for _ in 0..jobs {
            let (path, block) = (path.clone(), vec![b'x'; kib * 1024]);
            slowest = slowest.max(tokio::task::spawn_blocking(move || store(&path, &block)).await.unwrap());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        DONE.store(true, Relaxed);
        for t in ticking {
            t.await.unwrap();
        }
        slowest
    });
    drop(rt);
    println!("TRUTH polls={} slowest_poll_us={} slowest_job_ms={}", POLLS.load(Relaxed), SLOWEST_NS.load(Relaxed) / 1000, slowest.as_millis());
}
