//! Runs of real threads, recorded and checked afterwards, and the checkers on runs with faults.

mod by_hand;
mod checker_itself;
mod checker_of_meters_itself;
mod joint_recorded_runs;
mod new_keys_from_many_threads;
mod recorded_meters;
mod recorded_runs;
mod reserved_by_many_threads;
