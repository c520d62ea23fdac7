//! A shared value that is read often and replaced seldom: an `Arc` behind one pointer.
//!
//! ```
//! use std::sync::Arc;
//! use tollgate_root::Root;
//!
//! let root = Root::new(Arc::new(1));
//! let one = root.load();
//! assert!(root.swap(&one, Arc::new(2)));
//! assert_eq!((*one, *root.load()), (1, 2), "a guard keeps its value");
//! ```
//!
//! A read executes no locked instruction, and writes to memory of its own thread alone. The thread
//! that replaces a value pays for that.
//!
//! # Hazard pointers
//!
//! A reader stores the pointer in a *record* of its thread, and loads the pointer again. If it is
//! the same, the reader has a guard. A value that was replaced is *retired*: it is freed when no
//! record names it.
//! The algorithm is that of M. M. Michael, "Hazard Pointers: Safe Memory Reclamation for Lock-Free
//! Objects" (IEEE TPDS 15, 2004).
//!
//! If the second load finds the old value, the thread that frees has to see the store. That takes a
//! barrier on both sides. On Linux it is an *asymmetric* one. The reader's binds the compiler
//! alone, and costs nothing. The thread that frees has the kernel run one on each processor of the
//! process (`membarrier(2)`). Where the system call can't be had, both are fences. The first root
//! of a process finds out: if the call is refused later, the thread that frees panics, and frees
//! nothing.
//!
//! # Who frees
//!
//! The thread that replaces a value frees it, unless a record names it. If one does, the thread
//! marks that record, and the reader frees the value as its guard goes. So a value is freed with
//! its last guard, and no later. A thread that stops in a read keeps that value. A thread that
//! stops while it frees keeps all values that were retired before.
//!
//! A guard that is passed to `core::mem::forget` keeps its value until the root is dropped. Its
//! record stays as it is, and so keeps each later value at the same address.
//!
//! # Orderings
//!
//! - The exchange of the pointer releases the value, and the second load acquires it.
//! - The end of a guard releases its record, and who frees acquires it: reads come before the end of
//!   the value.
//! - The list of retired values is released by the thread that adds one, and acquired by the one that
//!   takes them, with its barrier.
//! - A mark is set before a barrier and the second look at the record. So either the look sees that
//!   the guard has gone, or the guard, as it goes, sees the mark. The mark releases the list. No model
//!   turns red without that, because models run these exchanges in one order.
//! - A record is given back after its guard has gone, and taken before the next one is there. So
//!   both release and acquire.
//! - A record is stored with a release each time. Who frees may see the next guard's store in place of
//!   the end of the guard before it. Loom takes both for one sequence; C++20 does not.

use core::cell::Cell;
use core::fmt;
use core::mem::forget;
use core::ops::Deref;
use core::ptr::{eq, null_mut};
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

mod record;
mod sync;

use record::{COLLECT, FIRST_OWN, Record, records};
use sync::{AtomicPtr, Link, Ordering, fence, heavy, is_asymmetric, light, prepare};

/// A pointer to a value that threads share.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_root::Root;
///
/// let root = Root::new(Arc::new("old"));
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert!(["old", "new"].contains(&*root.load())));
///     scope.spawn(|| root.swap(&root.load(), Arc::new("new")));
/// });
/// assert_eq!(*root.load(), "new");
/// ```
pub struct Root<T> {
    /// It owns a count of the value.
    current: AtomicPtr<T>,
    /// The values that were replaced and are to be freed.
    retired: AtomicPtr<Retired<T>>,
    owns: PhantomData<Arc<T>>,
}

/// A value that a thread reads. It is not freed as long as the guard lasts.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_root::Root;
///
/// let root = Root::new(Arc::new(vec![1, 2]));
/// let guard = root.load();
/// let kept: Arc<Vec<i32>> = guard.to_arc();
/// drop(guard);
/// assert_eq!((kept.len(), Arc::strong_count(&kept)), (2, 2));
/// ```
pub struct Guard<'a, T> {
    root: &'a Root<T>,
    value: *const T,
    /// The record that names the value. If there is none, the guard has a count of it.
    record: Option<&'static Record>,
}

impl<T> Root<T> {
    /// A root with a value.
    ///
    /// ```
    /// let root = tollgate_root::Root::new(std::sync::Arc::new(7));
    /// assert_eq!(*root.load(), 7);
    /// ```
    #[must_use]
    pub fn new(value: Arc<T>) -> Self {
        prepare();
        let _ = records();
        let current = AtomicPtr::new(Arc::into_raw(value).cast_mut());
        Self { current, retired: AtomicPtr::new(null_mut()), owns: PhantomData }
    }

    /// Returns the value. It is that of some moment between the call and the return.
    ///
    /// The first guards of a thread cost a few plain instructions each. A thread that has more than
    /// three at a time takes some locked ones for each further.
    ///
    /// ```
    /// let root = tollgate_root::Root::new(std::sync::Arc::new(7));
    /// let (one, other) = (root.load(), root.load());
    /// assert_eq!(*one, *other);
    /// ```
    #[inline]
    #[must_use]
    pub fn load(&self) -> Guard<'_, T> {
        let (value, record) = match FIRST_OWN.with(Cell::get) {
            Some(record) if record.is_free() => match self.try_load(record, light) {
                Some(value) => (value, record),
                None => self.load_slowly(record),
            },
            _ => self.load_slowly(Record::another()),
        };
        Guard { root: self, value, record: Some(record) }
    }

    /// The thread has no record yet, or has a guard by its first one, or its barrier is a fence. Or
    /// another thread has just replaced the value.
    #[cold]
    #[inline(never)]
    fn load_slowly(&self, record: &'static Record) -> (*const T, &'static Record) {
        // Each further round means that another thread has replaced the value.
        let value = loop {
            if let Some(value) = self.try_load(record, || if is_asymmetric() { light() } else { fence() }) {
                break value;
            }
        };
        // A failed attempt named a value that was replaced. Its thread may have marked the record for
        // that. No guard of that value will end, so this thread frees it.
        if record.marks.load(Ordering::Acquire) & COLLECT != 0 {
            // If the end of a value panics, the record is free again.
            let guard = Guard { root: self, value, record: Some(record) };
            self.collect();
            forget(guard);
        }
        (value, record)
    }

    #[inline(always)]
    fn try_load(&self, record: &Record, barrier: impl Fn()) -> Option<*const T> {
        let value = self.current.load(Ordering::Relaxed);
        record.hazard.store(value.cast(), Ordering::Release);
        barrier();
        // If it is the same, it was current after the record named it. So who replaces it sees the
        // record. If not, another thread has replaced it, and may have freed it.
        let now = self.current.load(Ordering::Acquire);
        // Not `value`: it may be of an earlier allocation at the same address.
        eq(now, value).then_some(now.cast_const())
    }

    /// Whether the value is still this one: one load, and no guard.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate_root::Root;
    ///
    /// let one = Arc::new(1);
    /// let root = Root::new(Arc::clone(&one));
    /// assert!(root.is(&one));
    /// assert!(root.swap(&one, Arc::new(2)) && !root.is(&one));
    /// ```
    #[inline]
    #[must_use]
    pub fn is(&self, value: &T) -> bool {
        eq(self.current.load(Ordering::Acquire), value)
    }

    /// Replaces the value, if it is still `old`. Returns whether it was.
    ///
    /// A value should be given to one root, once. A value that comes back is read while it is
    /// retired: readers free in vain, and who frees may look at their records many times. A value
    /// of two roots may be kept by one of them until its next replacement.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// let root = tollgate_root::Root::new(Arc::new(1));
    /// let one = root.load();
    /// assert!(root.swap(&one, Arc::new(2)));
    /// assert!(!root.swap(&one, Arc::new(3)), "it is 2");
    /// ```
    pub fn swap(&self, old: &T, new: Arc<T>) -> bool {
        // `old` is borrowed, so no other value has its address, except one without a size.
        self.replace(old, new)
    }

    fn replace(&self, old: *const T, new: Arc<T>) -> bool {
        let (old, new) = (old.cast_mut(), Arc::into_raw(new).cast_mut());
        // It publishes `new`. It need not acquire: the caller has seen `old`.
        // Not `old` itself: a pointer of a `&T` may not touch the counts beside the value.
        let exchanged = self.current.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed);
        let is_replaced = exchanged.is_ok();
        // SAFETY: both are of `Arc::into_raw`. Each exchange that succeeds takes the count that the
        // pointer had; if it fails, the root does not have the new one.
        let count = unsafe { Arc::from_raw(if let Ok(replaced) = exchanged { replaced } else { new }) };
        if is_replaced {
            self.push(Box::new(Retired { value: count, next: Link::new(null_mut()) }));
            self.collect();
        }
        is_replaced
    }

    /// Does what is marked in a record whose guard has gone.
    #[cold]
    #[inline(never)]
    fn do_marked(&self, record: &Record) {
        if record.end() {
            self.collect();
        }
    }

    /// The end of a guard.
    ///
    /// # Safety
    ///
    /// The guard had this value and this record. Without a record it had a count of the value.
    #[inline(never)]
    unsafe fn let_go(&self, value: *const T, record: Option<&Record>) {
        match record {
            Some(record) if record.let_go() => self.do_marked(record),
            Some(_) => {}
            // SAFETY: see above. The pointer is of `Arc::into_raw`.
            None => drop(unsafe { Arc::from_raw(value) }),
        }
    }

    /// `collect` takes the whole list, so no node is put back under a thread that pushes. Each push goes
    /// on with the release sequence, so one barrier acquires all nodes.
    fn push(&self, retired: Box<Retired<T>>) {
        let node = Box::into_raw(retired);
        let mut head = self.retired.load(Ordering::Relaxed);
        loop {
            // SAFETY: no other thread has the node before the exchange.
            unsafe { &*node }.next.set(head);
            match self.retired.compare_exchange(head, node, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => head = other,
            }
        }
    }

    /// Frees the retired values that no guard has. The guards of the others will free them.
    ///
    /// Each further round is due to a record that named a retired value and has changed. A load that
    /// begins later does not name such a value, and one that began earlier names it at most once. So
    /// the rounds end.
    #[cold]
    fn collect(&self) {
        loop {
            let mut list = self.retired.swap(null_mut(), Ordering::Relaxed);
            if list.is_null() {
                return;
            }
            // A record that will keep one of these values names it before the barrier. A later record
            // finds another value in its second load. The barrier also acquires the list.
            heavy();
            let (mut kept, mut free) = (Vec::new(), Vec::new());
            while !list.is_null() {
                // SAFETY: `push` made it of a box, and the swap took it from the list for this thread.
                let retired = unsafe { Box::from_raw(list) };
                list = retired.next.get();
                let value = Arc::as_ptr(&retired.value).cast_mut().cast::<()>();
                // One record is enough: its guard looks for the others as it goes.
                match records().find(|record| eq(record.hazard.load(Ordering::Acquire), value)) {
                    Some(record) => {
                        kept.push((record, value));
                        self.push(retired);
                    }
                    // It ends after the others are marked: its end may panic.
                    None => free.push(retired),
                }
            }
            if kept.is_empty() {
                return;
            }
            // After the values are in the list again, for the guard that sees the mark.
            for (record, _) in &kept {
                record.marks.fetch_or(COLLECT, Ordering::Release);
            }
            heavy();
            // The guards of these records will see their marks as they go.
            if kept.iter().all(|(record, value)| eq(record.hazard.load(Ordering::Relaxed), *value)) {
                return;
            }
        }
    }
}

/// A value that was replaced, in a list.
struct Retired<T> {
    value: Arc<T>,
    next: Link<*mut Self>,
}

impl<T> Drop for Root<T> {
    fn drop(&mut self) {
        // No guard is left: it would borrow the root.
        // SAFETY: the pointer is of `Arc::into_raw`, and has its count.
        let mut values = vec![unsafe { Arc::from_raw(self.current.load(Ordering::Relaxed)) }];
        let mut list = self.retired.load(Ordering::Relaxed);
        while !list.is_null() {
            // SAFETY: `push` made it of a box, and no other thread has the root.
            let retired = unsafe { Box::from_raw(list) };
            list = retired.next.get();
            // All end, also if the end of one panics.
            values.push(retired.value);
        }
    }
}

impl<'a, T> Guard<'a, T> {
    /// A guard by a count of the value's own, of a value of this root or of another one.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate_root::{Guard, Root};
    ///
    /// let root = Root::new(Arc::new(1));
    /// assert_eq!(*Guard::of(&root, Arc::new(2)), 2);
    /// ```
    #[must_use]
    pub fn of(root: &'a Root<T>, value: Arc<T>) -> Self {
        Self { root, value: Arc::into_raw(value), record: None }
    }

    /// Ends the guard as a drop does, without a call. `root` finds the root again if the value is to be
    /// freed, so that a caller need not keep the root in a register. With another root the value is
    /// freed later, by the next replacement.
    ///
    /// ```
    /// let root = tollgate_root::Root::new(std::sync::Arc::new(7));
    /// let guard = root.load();
    /// assert_eq!(*guard, 7);
    /// guard.end(|| &root);
    /// ```
    #[inline(always)]
    pub fn end(self, root: impl FnOnce() -> &'a Root<T>) {
        if let Some(record) = self.record {
            forget(self);
            if record.let_go() {
                root().do_marked(record);
            }
        }
    }

    /// The value, by a count of its own: two locked instructions.
    ///
    /// ```
    /// let root = tollgate_root::Root::new(std::sync::Arc::new(7));
    /// let kept = root.load().to_arc();
    /// assert_eq!(*kept, 7);
    /// ```
    #[must_use]
    pub fn to_arc(&self) -> Arc<T> {
        // SAFETY: the pointer is of `Arc::into_raw`, and the value is not freed before the guard ends.
        unsafe {
            Arc::increment_strong_count(self.value);
            Arc::from_raw(self.value)
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value is not freed before the guard ends: its record names it since it was current
        // (see `load`), or the guard has a count.
        unsafe { &*self.value }
    }
}

impl<T> Drop for Guard<'_, T> {
    // By values: with its address the guard would be in memory from its beginning, because a caller
    // that unwinds drops it.
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: they are those of the guard, which is not used again.
        unsafe { self.root.let_go(self.value, self.record) };
    }
}

/// A panic leaves a root whole. It holds an `Arc`.
impl<T: RefUnwindSafe> UnwindSafe for Root<T> {}
impl<T: RefUnwindSafe> RefUnwindSafe for Root<T> {}

impl<T> fmt::Debug for Root<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Root").finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for Guard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

#[cfg(all(test, tollgate_loom))]
mod loom_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
