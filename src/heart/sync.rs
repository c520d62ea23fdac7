//! The atomics of the core. In models they are loom's.

pub(super) use crate::sync::{AtomicU64, Ordering};

#[cfg(not(tollgate_loom))]
pub(super) use portable_atomic::AtomicU128;

#[cfg(tollgate_loom)]
pub(super) use interned::AtomicU128;

/// loom has no atomic of 128 bits. This one keeps the values in a list, each once, and the number
/// of the current value in an atomic of loom. So the model explores the orderings of the word, too.
#[cfg(tollgate_loom)]
mod interned {
    use std::sync::Mutex;

    use super::{AtomicU64, Ordering};

    #[derive(Debug)]
    pub(in crate::heart) struct AtomicU128 {
        number: AtomicU64,
        values: Mutex<Vec<u128>>,
    }

    impl AtomicU128 {
        pub(in crate::heart) fn new(value: u128) -> Self {
            Self { number: AtomicU64::new(0), values: Mutex::new(vec![value]) }
        }

        pub(in crate::heart) fn load(&self, order: Ordering) -> u128 {
            let number = self.number.load(order);
            self.values.lock().unwrap()[usize::try_from(number).unwrap()]
        }

        pub(in crate::heart) fn compare_exchange(
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
            let place = values.iter().position(|&other| other == value);
            let place = place.unwrap_or_else(|| {
                values.push(value);
                values.len() - 1
            });
            u64::try_from(place).unwrap()
        }
    }
}
