//! Atomics, and the asymmetric barrier. In models they are loom's.

#[cfg(not(tollgate_loom))]
pub(crate) use imp::*;
#[cfg(tollgate_loom)]
pub(crate) use loom::*;

#[cfg(tollgate_loom)]
mod loom;

#[cfg(not(tollgate_loom))]
mod imp {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

    use std::sync::Once;
    use std::sync::atomic::{self, compiler_fence};

    /// Written by one thread, and then published.
    pub(crate) type Link<T> = core::cell::Cell<T>;

    /// Whether the barrier of who frees is one of all threads. It is known before there is a root.
    static IS_ASYMMETRIC: AtomicBool = AtomicBool::new(false);

    /// Prepares the barriers, before there is a root.
    pub(crate) fn prepare() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| IS_ASYMMETRIC.store(membarrier(Command::Register), Ordering::Relaxed));
    }

    pub(crate) fn is_asymmetric() -> bool {
        IS_ASYMMETRIC.load(Ordering::Relaxed)
    }

    /// The barrier of a reader, if it is asymmetric.
    #[inline]
    pub(crate) fn light() {
        compiler_fence(Ordering::SeqCst);
    }

    /// The barrier of a reader, if it is not.
    pub(crate) fn fence() {
        atomic::fence(Ordering::SeqCst);
    }

    /// The barrier of who frees: one in each thread of the process, and its own.
    pub(crate) fn heavy() {
        fence();
        if is_asymmetric() {
            assert!(membarrier(Command::Run), "the kernel runs a barrier that it has registered");
        }
    }

    #[derive(Clone, Copy)]
    #[cfg_attr(not(all(target_os = "linux", not(miri))), expect(dead_code, reason = "there is no such call"))]
    enum Command {
        /// `MEMBARRIER_CMD_PRIVATE_EXPEDITED`
        Run = 1 << 3,
        /// `MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED`
        Register = 1 << 4,
    }

    /// Whether the system call succeeded.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn membarrier(command: Command) -> bool {
        // SAFETY: it reads no memory of this process.
        unsafe { libc::syscall(libc::SYS_membarrier, command as libc::c_int, 0, 0) == 0 }
    }

    #[cfg(not(all(target_os = "linux", not(miri))))]
    fn membarrier(_: Command) -> bool {
        false
    }
}
