// Each thread of the blocking pool runs a job that waits for another job of that pool. Workers idle, no lock is contended.
use scenarios::ms;

fn main() {
    std::thread::spawn(|| {
        std::thread::sleep(ms(800));
        println!("TRUTH pool_threads=2 all_blocked=1 queued_jobs=2 progress=never");
        std::process::exit(0)
    });
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).max_blocking_threads(2).enable_all().build().unwrap();
    rt.block_on(async {
        let h = tokio::runtime::Handle::current();
        let jobs: Vec<_> = (0..2)
            .map(|_| {
                let h = h.clone();
                tokio::task::spawn_blocking(move || {
                    std::thread::sleep(ms(50));
                    h.block_on(async { tokio::task::spawn_blocking(|| 1).await.unwrap() })
                })
            })
            .collect();
        for j in jobs {
            j.await.unwrap();
        }
    });
    println!("TRUTH progress=made");
}
