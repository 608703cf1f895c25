//! A runtime whose workers all have something to compute, for so long: a task for each, which lets the others have a turn every 2 ms.
//! Prints how long the workers ran and waited for a CPU, by the kernel's account of each.  usage: busy_workers WORKERS MS
use std::collections::HashSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

static WORKERS: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

extern "C" {
    fn gettid() -> i32;
}

async fn compute(until: Instant) -> u64 {
    let mut x = 1u64;
    while Instant::now() < until {
        WORKERS.lock().unwrap().get_or_insert_with(HashSet::new).insert(unsafe { gettid() });
        let slice = Instant::now() + Duration::from_millis(2);
        while Instant::now() < slice {
            for _ in 0..1000 {
                x = x.wrapping_mul(0x100_0000_01B3) ^ 7;
            }
        }
        tokio::task::yield_now().await;
    }
    x
}

/// Of a worker: it ran, and it waited for a CPU, in ns.
fn account(tid: i32) -> (u64, u64) {
    let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/schedstat")).unwrap();
    let v: Vec<u64> = text.split_whitespace().map(|w| w.parse().unwrap()).collect();
    (v[0], v[1])
}

fn main() {
    let args: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let (workers, ms) = (args[0] as usize, args[1]);
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap();
    rt.block_on(async {
        let until = Instant::now() + Duration::from_millis(ms);
        let computing: Vec<_> = (0..workers).map(|_| tokio::spawn(compute(until))).collect();
        for c in computing {
            std::hint::black_box(c.await.unwrap());
        }
    });
    let accounts: Vec<_> = WORKERS.lock().unwrap().take().unwrap().into_iter().map(account).collect();
    let (ran, waited) = accounts.iter().fold((0, 0), |sum, a| (sum.0 + a.0, sum.1 + a.1));
    println!("TRUTH workers={} ran_ms={} waited_ms={}", accounts.len(), ran / 1_000_000, waited / 1_000_000);
    drop(rt);
}
