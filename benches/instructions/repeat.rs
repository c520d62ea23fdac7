//! Repeats one decision where valgrind's tools can tell it from everything around it.

use std::hint::black_box;

/// What callgrind is told to count: the function [`counted`], and all that it calls.
pub(crate) const COUNTED: &str = "*counted*";

/// Repeats a decision, and tells the reader of a trace of stores what to look for.
pub(crate) struct Repeat {
    times: usize,
    top_of_stack: usize,
    // On the heap and there from the start, so that nothing else is ever written at their
    // addresses.
    end: Box<usize>,
    begin: Box<usize>,
}

/// Addresses that a child prints before it repeats anything.
pub(crate) struct Landmarks {
    /// Written right before each decision.
    pub(crate) begin: usize,
    /// Written right after each.
    pub(crate) end: usize,
    /// In the frame of `main`: the frames that decisions can have are below.
    pub(crate) top_of_stack: usize,
}

impl Repeat {
    /// `in_main` is a variable of `main`.
    pub(crate) fn new(times: usize, in_main: &u8) -> Self {
        Self { times, top_of_stack: address(in_main), end: Box::default(), begin: Box::default() }
    }

    pub(crate) fn times(&self) -> usize {
        self.times
    }

    /// Decides again and again, and makes sure that it is the path that was meant.
    pub(crate) fn decide<R>(&mut self, mut decide: impl FnMut() -> R, expected: impl Fn(&R) -> bool) {
        println!("{} {} {}", address(&*self.begin), address(&*self.end), self.top_of_stack);
        for time in 0..self.times {
            *black_box(&mut *self.begin) = time;
            let outcome = counted(&mut decide);
            *black_box(&mut *self.end) = time;
            assert!(expected(&outcome), "decision {time} went another way");
        }
    }
}

impl Landmarks {
    /// From what [`Repeat::decide`] printed.
    pub(crate) fn parse(printed: &str) -> Option<Self> {
        let mut numbers = printed.split_whitespace().map(|word| word.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Self { begin: next()?, end: next()?, top_of_stack: next()? })
    }
}

/// A function of its own whatever the optimiser thinks, with the decision inlined into it as into
/// anybody's code.
#[inline(never)]
fn counted<R>(decide: &mut impl FnMut() -> R) -> R {
    decide()
}

fn address<T>(of: &T) -> usize {
    std::ptr::from_ref(of).addr()
}
