//! A server with a task for each of thousands of connections, two workers for them all, and work for each line that comes: answers with the line and what
//! came of it; `quit` ends the server.  Counts its own polls.  usage: crowd PORT
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

static POLLS: AtomicU64 = AtomicU64::new(0);
static TASKS: AtomicU64 = AtomicU64::new(0);
static ANSWERS: AtomicU64 = AtomicU64::new(0);

struct Counted<F>(Pin<Box<F>>);

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        POLLS.fetch_add(1, Relaxed);
        self.0.as_mut().poll(cx)
    }
}

fn spawn(f: impl Future<Output = ()> + Send + 'static) {
    TASKS.fetch_add(1, Relaxed);
    tokio::spawn(Counted(Box::pin(f)));
}

/// The same for the same line, whatever else the machine does: some hundred microseconds.
fn work(line: &str) -> u64 {
    let mut x = line.bytes().fold(0x9E37_79B9_7F4A_7C15u64, |x, b| (x ^ b as u64).wrapping_mul(0x100_0000_01B3)) | 1;
    for _ in 0..300_000 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x
}

async fn serve(s: TcpStream, quit: Arc<Notify>) -> io::Result<()> {
    let mut s = BufReader::new(s);
    let mut line = String::new();
    loop {
        line.clear();
        if s.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        if line.trim() == "quit" {
            quit.notify_one();
            continue;
        }
        let out = format!("{} {:x}\n", line.trim(), work(line.trim()));
        s.get_mut().write_all(out.as_bytes()).await?;
        ANSWERS.fetch_add(1, Relaxed);
    }
}

fn main() {
    let port: u16 = std::env::args().nth(1).unwrap().parse().unwrap();
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    rt.block_on(async {
        let l = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let quit = Arc::new(Notify::new());
        let q = quit.clone();
        spawn(async move {
            loop {
                let (s, _) = l.accept().await.unwrap();
                let q = q.clone();
                spawn(async move {
                    let _ = serve(s, q).await;
                });
            }
        });
        quit.notified().await;
    });
    drop(rt);
    println!("TRUTH tasks={} polls={} answers={}", TASKS.load(Relaxed), POLLS.load(Relaxed), ANSWERS.load(Relaxed));
}
