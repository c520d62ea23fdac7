//! What models have in the place of atomics that loom lacks.

use std::sync::Mutex;

use loom::cell::UnsafeCell;

use super::{AtomicU64, Ordering};

/// A thread that reads while another writes is an error.
#[derive(Debug)]
pub(in crate::state) struct Record<const N: usize>(Mutex<(UnsafeCell<()>, [u64; N])>);

impl<const N: usize> Record<N> {
    pub(in crate::state) fn new() -> Self {
        Self(Mutex::new((UnsafeCell::new(()), [0; N])))
    }

    pub(in crate::state) fn write(&self, words: [u64; N]) {
        let mut record = self.0.lock().unwrap();
        // Loom compares this access with the others by what happens before what.
        record.0.with_mut(|_| ());
        record.1 = words;
    }

    pub(in crate::state) fn read(&self) -> [u64; N] {
        let record = self.0.lock().unwrap();
        record.0.with(|_| ());
        record.1
    }
}

/// loom has no atomic of 128 bits. This one keeps the values in a list, each once, and the number
/// of the current value in an atomic of loom. So the model explores the orderings of the word, too.
#[derive(Debug)]
pub(in crate::state) struct AtomicU128 {
    number: AtomicU64,
    values: Mutex<Vec<u128>>,
}

impl AtomicU128 {
    pub(in crate::state) fn new(value: u128) -> Self {
        Self { number: AtomicU64::new(0), values: Mutex::new(vec![value]) }
    }

    pub(in crate::state) fn load(&self, order: Ordering) -> u128 {
        let number = self.number.load(order);
        self.values.lock().unwrap()[usize::try_from(number).unwrap()]
    }

    pub(in crate::state) fn compare_exchange(
        &self,
        current: u128,
        new: u128,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u128, u128> {
        let (current, new) = (self.number_of(current), self.number_of(new));
        let swapped = self.number.compare_exchange(current, new, success, failure);
        let value = |number: u64| self.values.lock().unwrap()[usize::try_from(number).unwrap()];
        swapped.map(value).map_err(value)
    }

    fn number_of(&self, value: u128) -> u64 {
        let mut values = self.values.lock().unwrap();
        let cell = values.iter().position(|&other| other == value);
        let cell = cell.unwrap_or_else(|| {
            values.push(value);
            values.len() - 1
        });
        u64::try_from(cell).unwrap()
    }
}
