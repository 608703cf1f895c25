// Blocking read(2) in a task of a current_thread runtime: off-CPU, not CPU.
use scenarios::ms;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

async fn reads(mut a: UnixStream) -> Duration {
    let t = Instant::now();
    let mut c = [0u8; 1];
    a.read_exact(&mut c).unwrap(); // the bug
    t.elapsed()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (a, mut b) = UnixStream::pair().unwrap();
    let hb = tokio::spawn(async {
        let mut w = Duration::ZERO;
        for _ in 0..30 {
            let t = Instant::now();
            tokio::time::sleep(ms(10)).await;
            w = w.max(t.elapsed());
        }
        w
    });
    tokio::time::sleep(ms(50)).await;
    let h = std::thread::spawn(move || {
        std::thread::sleep(ms(300));
        b.write_all(b"x").unwrap();
    });
    let blocked = tokio::spawn(reads(a)).await.unwrap();
    h.join().unwrap();
    println!("TRUTH read_blocked_ms={} worst_10ms_timer_ms={} task=reads", blocked.as_millis(), hb.await.unwrap().as_millis());
}
