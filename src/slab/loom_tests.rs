//! Every interleaving of threads that take and give back.

use super::*;
use loom::{sync::Arc, thread};

/// Two threads allocate, mark and free; none ever sees another's mark in a block of its own.
#[test]
fn loom_pool() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    crate::sync::check_model(&model, || {
        let slab = Arc::new(<Slab>::new(2, 2));
        for block in [slab.alloc(), slab.alloc()].into_iter().flatten() {
            slab.free(block);
        }
        let work = |mark: u64| {
            let slab = Arc::clone(&slab);
            thread::spawn(move || {
                for _ in 0..2 {
                    let Some(block) = slab.alloc() else { continue };
                    let word = &slab.block(block)[1];
                    word.store(mark, Ordering::Relaxed);
                    thread::yield_now();
                    assert_eq!(word.load(Ordering::Relaxed), mark);
                    slab.free(block);
                }
            })
        };
        let threads = [work(1), work(2)];
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(slab.alloc().is_some() && slab.alloc().is_some() && slab.alloc().is_none());
    });
}

/// One thread stalls between the load of the top's link and the swap of the top, while another
/// allocates two blocks and frees the first: the top is the same again, but its link is not.
#[test]
fn loom_pool_with_the_same_top_again() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    crate::sync::check_model(&model, || {
        let slab = Arc::new(<Slab>::new(2, 3));
        for block in [slab.alloc(), slab.alloc(), slab.alloc()].into_iter().flatten() {
            slab.free(block);
        }
        let sleeper = Arc::clone(&slab);
        let thread = thread::spawn(move || sleeper.alloc());
        let (first, kept) = (slab.alloc().unwrap(), slab.alloc().unwrap());
        slab.free(first);
        assert!(thread.join().unwrap().is_some());
        assert!(slab.alloc().is_some_and(|block| block != kept), "{kept} is taken twice");
        assert_eq!(slab.alloc(), None);
    });
}

/// Two blocks are free at each moment. A thread that counts them follows the link of one that
/// another thread allocates, and writes over.
#[test]
fn loom_free_blocks_are_counted_while_one_is_allocated() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    crate::sync::check_model(&model, || {
        let slab = Arc::new(<Slab>::new(2, 3));
        for block in [slab.alloc(), slab.alloc(), slab.alloc()].into_iter().flatten() {
            slab.free(block);
        }
        let counts = Arc::clone(&slab);
        let thread = thread::spawn(move || assert_eq!(counts.room_up_to(2), 2));
        for _ in 0..2 {
            let block = slab.alloc().unwrap();
            slab.block(block)[0].store(0, Ordering::Release);
            slab.free(block);
        }
        thread.join().unwrap();
    });
}
