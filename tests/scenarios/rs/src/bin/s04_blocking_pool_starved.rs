// Slow jobs fill a small blocking pool; a fast job waits for a slot. Workers idle, nothing is contended.
use scenarios::ms;
use std::time::Instant;

fn main() {
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).max_blocking_threads(2).enable_all().build().unwrap();
    rt.block_on(async {
        let job = || {
            let t = Instant::now();
            std::thread::sleep(ms(300));
            (t, Instant::now())
        };
        let mut slow = [tokio::task::spawn_blocking(job), tokio::task::spawn_blocking(job)].into_iter();
        tokio::time::sleep(ms(20)).await;
        let t = Instant::now();
        let started = tokio::task::spawn_blocking(move || t.elapsed()).await.unwrap();
        let (a, b) = (slow.next().unwrap().await.unwrap(), slow.next().unwrap().await.unwrap());
        let both = a.1.min(b.1) - a.0.max(b.0); // from when both were in it until one was not
        println!("TRUTH pool_threads=2 both_slow_ms={} fast_job_queue_wait_ms={}", both.as_millis(), started.as_millis());
    });
}
