//! Stops a thread wherever it is, by a signal whose handler waits until it is told to return.
//!
//! A thread that is stopped inside the allocator may hold the allocator's lock, for which others
//! wait through no fault of the limiter's. So the allocator notes that a thread is in it, and a
//! handler that finds this returns at once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

/// Threads that can be stopped at a time.
pub const MOST: usize = 8;

const RUNS: u32 = 0;
/// A signal is on its way.
const ASKED: u32 = 1;
const STOPPED: u32 = 2;
/// The signal came while the thread was in the allocator.
const ALLOCATES: u32 = 3;

struct Place {
    state: AtomicU32,
    /// The thread, as pthreads name it.
    thread: AtomicU64,
}

static PLACES: [Place; MOST] = [const { Place { state: AtomicU32::new(RUNS), thread: AtomicU64::new(0) } }; MOST];

thread_local! {
    // Neither is made or dropped lazily, so a signal handler may read them.
    static ALLOCATING: Cell<bool> = const { Cell::new(false) };
    static PLACE: Cell<Option<&'static Place>> = const { Cell::new(None) };
}

/// The system's allocator, which notes for each thread whether it is in it.
#[derive(Debug)]
pub struct Noted;

fn noted<T>(allocate: impl FnOnce() -> T) -> T {
    ALLOCATING.set(true);
    compiler_fence(Ordering::SeqCst);
    let result = allocate();
    compiler_fence(Ordering::SeqCst);
    ALLOCATING.set(false);
    result
}

// SAFETY: each call is handed on as it is.
unsafe impl GlobalAlloc for Noted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        noted(|| unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        noted(|| unsafe { System.dealloc(block, layout) });
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        noted(|| unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        noted(|| unsafe { System.realloc(block, layout, size) })
    }
}

/// Touches nothing but atomics, two thread locals that are there from the start, and the futex
/// call: all safe in a handler.
extern "C" fn handle(_signal: libc::c_int) {
    let Some(place) = PLACE.get() else { return };
    if ALLOCATING.get() {
        place.state.store(ALLOCATES, Ordering::Release);
        return;
    }
    // SAFETY: the address is that of this thread's own errno.
    let errno = unsafe { *libc::__errno_location() };
    place.state.store(STOPPED, Ordering::Release);
    while place.state.load(Ordering::Acquire) == STOPPED {
        // SAFETY: the word lives for ever; waits only while it says so.
        unsafe {
            libc::syscall(libc::SYS_futex, place.state.as_ptr(), libc::FUTEX_WAIT, STOPPED, core::ptr::null::<u8>());
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Makes the signal stop threads. To be called before any is stopped; again does no harm.
///
/// # Panics
///
/// If the system refuses.
pub fn install() {
    // SAFETY: all zeros is a valid sigaction; the handler is one that may run at any instruction,
    // see there.
    let refused = unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handle as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGUSR1, &raw const action, core::ptr::null_mut())
    };
    assert_eq!(refused, 0, "no handler for SIGUSR1");
}

/// Lets the calling thread be stopped under this number from now on. It must not end before the
/// last call of [`stop`] for it has returned.
pub fn can_be_stopped(number: usize) {
    let place = &PLACES[number];
    // SAFETY: always succeeds.
    place.thread.store(unsafe { libc::pthread_self() }, Ordering::Release);
    PLACE.set(Some(place));
}

/// Stops the thread of this number at whatever instruction it is. `false` if it was in the
/// allocator: then it goes on.
#[must_use]
pub fn stop(number: usize) -> bool {
    let place = &PLACES[number];
    place.state.store(ASKED, Ordering::Release);
    // SAFETY: the thread has not ended: see `can_be_stopped`.
    let refused = unsafe { libc::pthread_kill(place.thread.load(Ordering::Acquire), libc::SIGUSR1) };
    assert_eq!(refused, 0, "no signal to thread {number}");
    loop {
        match place.state.load(Ordering::Acquire) {
            ASKED => std::thread::yield_now(),
            STOPPED => return true,
            _ => {
                place.state.store(RUNS, Ordering::Release);
                return false;
            }
        }
    }
}

/// Lets a stopped thread go on.
pub fn release(number: usize) {
    let place = &PLACES[number];
    place.state.store(RUNS, Ordering::Release);
    // SAFETY: the word lives for ever.
    unsafe {
        libc::syscall(libc::SYS_futex, place.state.as_ptr(), libc::FUTEX_WAKE, 1);
    }
}
