//! Every account against what each algorithm must answer, worked out the naive way.

mod against_oracle;
mod any;
mod blocks;
mod changes;
mod examples;
mod lives;
mod traffic;
mod warm_up;
