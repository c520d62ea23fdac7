//! Records: where guards say which value they have.

use core::cell::Cell;
use core::iter::successors;
use core::ptr::null_mut;

use once_cell::race::OnceBox;

use crate::sync::{AtomicBool, AtomicPtr, AtomicU8, Ordering, fence, is_asymmetric, light};

/// The place of a guard. Records are never freed: there are as many as there were guards at a time,
/// or as three for each thread. One that is not taken has no guard.
#[repr(align(128))]
pub(crate) struct Record {
    /// The value of the guard; null without one. Only the thread that took the record writes it.
    pub(crate) hazard: AtomicPtr<()>,
    /// What is to be done as the guard goes.
    pub(crate) marks: AtomicU8,
    /// Whether a thread or a guard has the record.
    is_taken: AtomicBool,
    pub(crate) next: OnceBox<Self>,
}

/// A value that the record named was replaced: the guard frees it.
pub(crate) const COLLECT: u8 = 1;
/// The record was taken for one guard.
const GIVE_BACK: u8 = 2;
/// The barrier of readers is a fence. All records have this mark, or none. So each guard ends by
/// [`Record::end`], which has the fence.
const FENCE: u8 = 4;

/// The records that a thread keeps.
pub(crate) const OWN: usize = 3;

/// The records that a thread keeps until it ends.
struct Kept([Cell<Option<&'static Record>>; OWN]);

impl Kept {
    const fn new() -> Self {
        Self([const { Cell::new(None) }; OWN])
    }

    /// A record without a guard; `None` if all have one.
    fn free(&self) -> Option<&'static Record> {
        let free = self.0.iter().filter_map(Cell::get).find(|record| record.is_free());
        free.or_else(|| {
            let place = self.0.iter().find(|place| place.get().is_none())?;
            place.set(Some(Record::take()));
            place.get()
        })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // A guard that comes later, in another destructor of the thread, takes a record for itself.
        let _ = FIRST_OWN.try_with(Cell::take);
        for record in self.0.iter().filter_map(Cell::get) {
            if record.is_free() {
                record.give_back();
            } else {
                // Its guard outlives the records of the thread.
                record.marks.fetch_or(GIVE_BACK, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(not(tollgate_loom))]
thread_local! {
    /// The first record of the thread. It has no destructor, so that a read asks for none.
    pub(crate) static FIRST_OWN: Cell<Option<&'static Record>> = const { Cell::new(None) };
    static OWN_RECORDS: Kept = const { Kept::new() };
}

#[cfg(tollgate_loom)]
loom::thread_local! {
    pub(crate) static FIRST_OWN: Cell<Option<&'static Record>> = Cell::new(None);
    static OWN_RECORDS: Kept = Kept::new();
}

#[cfg(not(tollgate_loom))]
fn first_record() -> &'static Record {
    static FIRST: OnceBox<Record> = OnceBox::new();
    FIRST.get_or_init(Record::new)
}

#[cfg(tollgate_loom)]
loom::lazy_static! {
    /// Models take allocations as given: loom does not see how a `OnceBox` synchronises. The records are
    /// never freed, because the first thread of a model ends after them.
    static ref FIRST: &'static Record = {
        let first: &Record = Box::leak(Record::new());
        (0..6).fold(first, |record, _| record.next.get_or_init(Record::new));
        first
    };
}

#[cfg(tollgate_loom)]
fn first_record() -> &'static Record {
    &FIRST
}

impl Record {
    fn new() -> Box<Self> {
        Box::new(Self {
            hazard: AtomicPtr::new(null_mut()),
            marks: AtomicU8::new(if is_asymmetric() { 0 } else { FENCE }),
            is_taken: AtomicBool::new(false),
            next: OnceBox::new(),
        })
    }

    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.hazard.load(Ordering::Relaxed).is_null()
    }

    /// The guard goes. Returns whether something is to be done then.
    #[inline(always)]
    pub(crate) fn let_go(&self) -> bool {
        self.hazard.store(null_mut(), Ordering::Release);
        // A mark that comes later is set by a thread that then sees the store.
        light();
        self.marks.load(Ordering::Relaxed) != 0
    }

    /// Gives a record without a guard back.
    fn give_back(&self) {
        self.is_taken.store(false, Ordering::Release);
    }

    /// A record without a guard, for a thread that has none yet, or guards.
    #[cold]
    pub(crate) fn another() -> &'static Self {
        let kept = OWN_RECORDS.try_with(|kept| {
            let free = kept.free()?;
            // `Root::load` uses the first record without a fence.
            if is_asymmetric() {
                FIRST_OWN.with(|first| first.set(kept.0[0].get()));
            }
            Some(free)
        });
        kept.ok().flatten().unwrap_or_else(|| {
            let record = Self::take();
            record.marks.fetch_or(GIVE_BACK, Ordering::Relaxed);
            record
        })
    }

    /// Takes a record that no thread and no guard has taken.
    fn take() -> &'static Self {
        let mut record = first_record();
        // Acquires from `give_back`: the reads of the last guard come before the next guard.
        while record.is_taken.load(Ordering::Relaxed) || record.is_taken.swap(true, Ordering::Acquire) {
            record = record.next.get_or_init(Self::new);
        }
        record
    }

    /// Gives the record back if it was taken for a guard, which has gone. Returns whether the guard is to
    /// free a value.
    #[cold]
    pub(crate) fn end(&self) -> bool {
        // The end of the guard comes before the look at the marks, where `light` does not see to that.
        fence();
        let marks = self.marks.fetch_and(FENCE, Ordering::Acquire);
        if marks & GIVE_BACK != 0 {
            self.give_back();
        }
        marks & COLLECT != 0
    }
}

/// All records. One that a reader has taken is among them after the barrier.
pub(crate) fn records() -> impl Iterator<Item = &'static Record> {
    successors(Some(first_record()), |record| record.next.get())
}
