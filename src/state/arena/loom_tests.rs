//! The sweep of an arena beside an insertion, and beside another sweep.

use super::*;
use crate::quota::Quota;
use crate::state::cell::Word;
use crate::state::cell::{Found, Key, PAGE, SEALED};
use crate::sync::check_model;

const KEY: Key = Key { tag: 7 };

fn explore(threads: impl Fn(Arc<Arena>) + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    check_model(&builder, move || {
        let plans = Plans::new(&[&[Quota::per_second(1)]], 0);
        threads(Arena::new(0, Arc::new(plans), 2 * PAGE, 0));
    });
}

/// Freezes the words of keys, and seals the other cells, as a rebuild does.
fn close(cell: &Cell) {
    if !cell.seal() {
        while !cell.word.load().is_frozen() {
            let _ = cell.word.swap(Word::NEW, Word::NEW.frozen());
        }
    }
}

fn is_closed(cell: &Cell) -> bool {
    cell.tag.load(Ordering::Acquire) == SEALED || cell.word.load().is_frozen()
}

/// The cell of a key that was inserted is frozen by the sweep that passes it.
#[test]
fn loom_arena_no_key_is_inserted_behind_the_sweep() {
    explore(|arena| {
        let sweeps = [(); 2].map(|()| {
            let arena = Arc::clone(&arena);
            loom::thread::spawn(move || arena.sweep_page(close))
        });
        let inserted = match arena.find(KEY) {
            Found::End(end) if arena.insert(end, KEY) => Some(end),
            _ => None,
        };
        sweeps.into_iter().for_each(|sweep| assert!(sweep.join().is_ok()));
        while !arena.sweep_page(close) {}
        assert!((0..arena.len()).all(|index| is_closed(arena.cell(index))));
        if let Some(index) = inserted {
            assert!(arena.cell(index).word.load().is_frozen());
        }
    });
}

/// A thread that is told that all pages are swept finds each cell as the sweep leaves it, whichever
/// thread swept it.
#[test]
fn loom_arena_a_sweep_has_ended_when_each_cell_is_closed() {
    explore(|arena| {
        let Found::End(end) = arena.find(KEY) else { unreachable!() };
        assert!(arena.insert(end, KEY));
        let sweep = |arena: &Arena| {
            if arena.sweep_page(close) {
                assert!((0..arena.len()).all(|index| is_closed(arena.cell(index))));
            }
        };
        let here = Arc::clone(&arena);
        let other = loom::thread::spawn(move || {
            sweep(&here);
            sweep(&here);
        });
        sweep(&arena);
        sweep(&arena);
        other.join().unwrap();
    });
}
