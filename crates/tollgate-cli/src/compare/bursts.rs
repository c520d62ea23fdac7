//! The most that was let through in any window.

use crate::events::Event;
use crate::plan::Plan;
use crate::time::Nanos;

/// What one key was granted in some window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Burst {
    pub(super) permits: u64,
    /// The column of the log that has the key, and its number there.
    pub(super) key: Option<(usize, usize)>,
}

/// All that was granted: 24 bytes a request and dimension.
#[derive(Debug)]
pub(super) struct Granted {
    columns: Vec<usize>,
    permits: Vec<Vec<(u32, Nanos, u32)>>,
}

impl Granted {
    pub(super) fn new(plan: &Plan) -> Self {
        let columns: Vec<usize> = plan.dimensions.iter().map(|dimension| dimension.column).collect();
        Self { permits: vec![Vec::new(); columns.len()], columns }
    }

    /// Adds what an admitted request with these keys has cost, at the time at which it passes.
    pub(super) fn add(&mut self, keys: &[Option<u32>], event: &Event, delay_ns: u64) {
        let passes = event.time.saturating_add_unsigned(delay_ns);
        for (key, permits) in keys.iter().zip(&mut self.permits) {
            permits.extend(key.map(|key| (key, passes, event.actual)));
        }
    }

    /// The largest burst of any key in any half-open window of each length. Of equal ones, the one
    /// of the key seen first.
    pub(super) fn largest(mut self, windows: &[u64]) -> Vec<Burst> {
        self.permits.iter_mut().for_each(|permits| permits.sort_unstable());
        windows.iter().map(|&window| self.largest_in(window)).collect()
    }

    fn largest_in(&self, window: u64) -> Burst {
        let mut largest = Burst::default();
        for (&column, permits) in self.columns.iter().zip(&self.permits) {
            let (mut oldest, mut held) = (0, 0);
            for &(key, time, cost) in permits {
                while permits[oldest].0 != key || time.abs_diff(permits[oldest].1) >= window {
                    held -= u64::from(permits[oldest].2);
                    oldest += 1;
                }
                held += u64::from(cost);
                if held > largest.permits {
                    largest = Burst { permits: held, key: Some((column, key as usize)) };
                }
            }
        }
        largest
    }
}
