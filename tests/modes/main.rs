//! Shadow mode, penalties and lists, of each kind of limiter: against an oracle, at the caps, by
//! clocks that go back, and from many threads.

mod against_oracle;
mod bad_input;
mod clocks;
mod direct;
mod enforced;
mod growing;
mod joint;
mod lists;
mod naive;
mod penalties;
mod penalty;
mod settings;
mod shadow;
mod threads;
mod waits;
