//! The functions of shim/d9.h, from stable Rust and without a crate: one `dlsym`, and a table of pointers behind it.
use std::ffi::{c_char, c_void, CStr};
use std::sync::OnceLock;

pub const NO_WORKER: u32 = u32::MAX;
/// Tokio does not tell what a poll returned.
pub const UNKNOWN: u32 = u32::MAX;
pub const READY: u32 = 1;
pub const CANCELLED: u32 = 2;
pub const INFO: u32 = 3;

/// `struct d9_abi`.
#[repr(C)]
pub struct Table {
    version: u32,
    size: u32,
    pub worker_park: extern "C" fn(u32, u32),
    pub worker_unpark: extern "C" fn(),
    task_spawn: extern "C" fn(u64, u64, u32, *const c_char),
    pub poll_begin: extern "C" fn(u64, u32, u32),
    pub poll_end: extern "C" fn(u32),
    pub wake: extern "C" fn(u64, u64, u32),
    pub task_end: extern "C" fn(u64, u32),
    span_begin: extern "C" fn(*const c_char, u64),
    span_end: extern "C" fn(),
    log_line: extern "C" fn(u32, *const c_char),
    counter: extern "C" fn(*const c_char, i64),
    event_type: extern "C" fn(*const c_char, *const c_char) -> u32,
    event: extern "C" fn(u32, *const c_void, usize),
}

extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *const c_void;
}

/// The recorder's functions; `None`: nobody records.
pub fn get() -> Option<&'static Table> {
    static FOUND: OnceLock<Option<&'static Table>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // RTLD_DEFAULT is the null handle.  The table lives as long as the process.
        let table = unsafe { dlsym(std::ptr::null_mut(), c"d9_abi".as_ptr()).cast::<Table>().as_ref() };
        table.filter(|t| t.version == 1 && t.size as usize >= std::mem::size_of::<Table>())
    })
}

impl Table {
    pub fn task_spawn(&self, task: u64, parent: u64, runtime: u32, name: &CStr) {
        (self.task_spawn)(task, parent, runtime, name.as_ptr())
    }
    pub fn log_line(&self, level: u32, text: &CStr) {
        (self.log_line)(level, text.as_ptr())
    }
    pub fn counter(&self, name: &CStr, value: i64) {
        (self.counter)(name.as_ptr(), value)
    }
    pub fn event_type(&self, name: &CStr, fields: &CStr) -> u32 {
        (self.event_type)(name.as_ptr(), fields.as_ptr())
    }
    pub fn event(&self, kind: u32, data: &[u8]) {
        (self.event)(kind, data.as_ptr().cast(), data.len())
    }
}

/// A stretch of work on this thread: from here to where it is dropped.  Not to be held over an `.await`.
pub struct Span(());

pub fn span(name: &CStr, id: u64) -> Span {
    if let Some(d9) = get() {
        (d9.span_begin)(name.as_ptr(), id);
    }
    Span(())
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(d9) = get() {
            (d9.span_end)();
        }
    }
}
