// One worker returns from epoll_wait, then its task blocks. Nobody else takes the I/O driver: timers and sockets of the whole runtime stall.
// The client writes between two ticks of the victim.  If the driver woke both in one moment all the same, another worker was called and took it:
// then there is no such stall, and TRUTH says so.
use scenarios::ms;
use std::time::Instant;
use tokio::io::AsyncReadExt;

async fn bad(listener: tokio::net::TcpListener) -> (Instant, Instant) {
    let (mut s, _) = listener.accept().await.unwrap();
    let mut b = [0u8; 1];
    s.read_exact(&mut b).await.unwrap(); // woken by the driver on this very worker
    let t = Instant::now();
    std::thread::sleep(ms(400)); // the bad task: blocks its worker off-CPU
    (t, Instant::now())
}

#[tokio::main(flavor = "multi_thread", worker_threads = 3)]
async fn main() {
    let l = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = l.local_addr().unwrap();
    let blocked = tokio::spawn(bad(l));
    let (ticked, tick) = std::sync::mpsc::channel();
    let victim = tokio::spawn(async move {
        let mut ticks = Vec::new();
        for _ in 0..40 {
            tokio::time::sleep(ms(20)).await;
            ticks.push(Instant::now());
            ticked.send(()).ok();
        }
        ticks
    });
    std::thread::spawn(move || { // a plain client outside the runtime
        use std::io::Write;
        let mut s = std::net::TcpStream::connect(addr).unwrap();
        tick.iter().nth(6).unwrap();
        std::thread::sleep(ms(8));
        s.write_all(b"x").unwrap();
        std::thread::sleep(ms(600));
    });
    let (ticks, (from, to)) = (victim.await.unwrap(), blocked.await.unwrap());
    let within = ticks.iter().filter(|t| **t > from && **t < to).count();
    println!("TRUTH blocked_worker_ms={} ticks_meanwhile={within} task=bad", (to - from).as_millis());
}
