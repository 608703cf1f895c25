// The same for Rust: generics, closures, a trait object, a thread.
extern "C" {
    fn dump_self();
}

trait Job {
    fn go(&self, x: u64) -> u64;
}
struct Worker<T>(T);
impl<T: Copy + Into<u64>> Job for Worker<T> {
    #[inline(never)]
    fn go(&self, x: u64) -> u64 {
        unsafe { dump_self() };
        std::hint::black_box(x + self.0.into())
    }
}

#[inline(never)]
fn apply<F: Fn(u64) -> u64>(f: F) -> u64 {
    std::hint::black_box(f(3)) + 1
}

#[inline(never)]
fn outer(job: &dyn Job) -> u64 {
    apply(|x| std::hint::black_box(job.go(x)) + 1) + 1
}

fn main() {
    let t = std::thread::spawn(|| outer(std::hint::black_box(&Worker(7u8))));
    std::process::exit((t.join().unwrap() == 0) as i32);
}
