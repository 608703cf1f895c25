// A std Mutex guard lives across .await on a current_thread runtime: the second task blocks the only thread that could release it.
use scenarios::ms;
use std::sync::Mutex;

static M: Mutex<u32> = Mutex::new(0);

async fn user(id: u32) {
    let mut g = M.lock().unwrap();
    *g += id;
    tokio::time::sleep(ms(20)).await;
    drop(g);
}

fn main() {
    std::thread::spawn(|| {
        std::thread::sleep(ms(800));
        println!("TRUTH deadlock=self owner_thread=main waiter_thread=main blocked_ms>={}", ms(700).as_millis());
        std::process::exit(0)
    });
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async { tokio::join!(user(1), user(2)) });
    println!("TRUTH unreachable");
}
