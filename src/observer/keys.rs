//! The keys of an observed request, whatever their types.

use core::cell::{Cell, RefCell};
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::keys::{AsKey, Dimensions, Keys};

/// Keys that can be hashed again.
pub(crate) trait Feed {
    /// Feeds the hasher as the key of this dimension does.
    fn feed(&self, dimension: usize, state: &mut dyn Hasher);
}

/// The only key of a request.
pub(crate) struct OneKey<'a, K: ?Sized, A>(&'a A, PhantomData<fn(&K)>);

impl<'a, K: ?Sized, A: AsKey<K>> OneKey<'a, K, A> {
    pub(crate) fn new(key: &'a A) -> Self {
        Self(key, PhantomData)
    }
}

impl<K: ?Sized, A: AsKey<K>> Feed for OneKey<'_, K, A> {
    fn feed(&self, _: usize, mut state: &mut dyn Hasher) {
        self.0.hash_key(&mut state);
    }
}

/// The keys of a request in several dimensions.
pub(crate) struct OfDimensions<'a, D: ?Sized, A>(&'a A, PhantomData<fn(&D)>);

impl<'a, D: Dimensions + ?Sized, A: Keys<D>> OfDimensions<'a, D, A> {
    pub(crate) fn new(keys: &'a A) -> Self {
        Self(keys, PhantomData)
    }
}

impl<D: Dimensions + ?Sized, A: Keys<D>> Feed for OfDimensions<'_, D, A> {
    fn feed(&self, dimension: usize, state: &mut dyn Hasher) {
        let feeder = Feeder { left: Cell::new(dimension), state: RefCell::new(state) };
        // A key is hashed before it is counted.
        self.0.each(&feeder, |_| feeder.left.set(feeder.left.get().wrapping_sub(1)));
    }
}

/// Gives one of several keys to a hasher.
struct Feeder<'a> {
    /// The number of keys before it.
    left: Cell<usize>,
    state: RefCell<&'a mut dyn Hasher>,
}

impl Fingerprinter for Feeder<'_> {
    fn fingerprint<Q: Hash + ?Sized>(&self, key: &Q) -> Fingerprint {
        if self.left.get() == 0 {
            key.hash(&mut *self.state.borrow_mut());
        }
        Fingerprint::new(0, 0)
    }
}
