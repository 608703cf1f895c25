// A task keeps a std Mutex guard while it sleeps; a plain thread that wants the lock waits until the task is polled again.
use scenarios::ms;
use std::sync::Mutex;
use std::time::{Duration, Instant};

static TABLE: Mutex<u32> = Mutex::new(0);

async fn keeps() -> Duration {
    let mut guard = TABLE.lock().unwrap();
    let t = Instant::now();
    tokio::time::sleep(ms(300)).await; // the bug
    *guard += 1;
    drop(guard);
    t.elapsed()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let local = tokio::task::LocalSet::new();
    let waiter = std::thread::spawn(|| {
        std::thread::sleep(ms(50));
        let t = Instant::now();
        drop(TABLE.lock().unwrap());
        t.elapsed()
    });
    let kept = local.run_until(async { tokio::task::spawn_local(keeps()).await.unwrap() }).await;
    println!("TRUTH kept_ms={} waited_ms={} task=keeps", kept.as_millis(), waiter.join().unwrap().as_millis());
}
