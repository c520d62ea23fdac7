//! Naive accounts of one key, from which permits are reserved and given back, and whose quotas
//! change.

pub mod account;
mod bucket;
mod log;
mod queue;
mod steps;
mod windows;

/// What was charged: a number by which the naive account knows it.
pub type Number = usize;

/// An answer: the delay and the number of the charge, or the wait.
pub type Answer = Result<(u64, Number), u64>;

pub trait Naive: Sized {
    /// Without `within` it is not to be given back, and not to wait (but in a queue, as long as
    /// that lets it).
    fn request(&mut self, now: u64, cost: u32, within: Option<u64>) -> Answer;
    /// Gives back all but `kept` of its permits. Returns how many.
    fn refund(&mut self, now: u64, number: Number, kept: u32) -> u32;
    /// Charges permits, whether they fit or not. They are not to be given back.
    fn owe(&mut self, now: u64, cost: u32);
    /// A charge of `cost` permits turns out to be of `actual`. Returns how many are charged then.
    fn settle(&mut self, now: u64, number: Number, cost: u32, actual: u32) -> u32 {
        match actual.checked_sub(cost) {
            Some(0) => cost,
            Some(more) => {
                self.owe(now, more);
                actual
            }
            None => cost - self.refund(now, number, actual),
        }
    }
    fn remaining(&self, now: u64) -> u32;
    /// The same key under other quotas, which `fresh` is a new key of.
    fn changed(self, now: u64, fresh: Self) -> Self;
}
