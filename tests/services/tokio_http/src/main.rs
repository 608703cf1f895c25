//! An HTTP server on Tokio's multi-thread runtime; prints its workers' thread ids; stands still on /slow, ends on /quit.  usage: tokio_http PORT
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

extern "C" {
    fn gettid() -> i32;
}

async fn serve(mut s: TcpStream, quit: Arc<Notify>) -> std::io::Result<()> {
    let mut buf = vec![0u8; 4096];
    loop {
        let n = s.read(&mut buf).await?;
        if n == 0 {
            return Ok(());
        }
        let head = String::from_utf8_lossy(&buf[..n]);
        let path = head.split_whitespace().nth(1).unwrap_or("/").to_string();
        if path == "/slow" {
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
        let out = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", path.len(), path);
        s.write_all(out.as_bytes()).await?;
        if path == "/quit" {
            quit.notify_one();
            return Ok(());
        }
    }
}

fn main() {
    let port: u16 = std::env::args().nth(1).unwrap().parse().unwrap();
    let workers = Arc::new(Mutex::new(Vec::new()));
    let seen = workers.clone();
    let rt = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(3)
        .enable_all()
        .on_thread_start(move || seen.lock().unwrap().push(unsafe { gettid() }))
        .build()
        .unwrap();
    rt.block_on(async {
        let l = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let quit = Arc::new(Notify::new());
        let q = quit.clone();
        tokio::spawn(async move {
            while let Ok((s, _)) = l.accept().await {
                tokio::spawn(serve(s, q.clone()));
            }
        });
        quit.notified().await;
    });
    drop(rt);
    let tids: Vec<String> = workers.lock().unwrap().iter().map(|t| t.to_string()).collect();
    println!("TRUTH workers={}", tids.join(","));
}
