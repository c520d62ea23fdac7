//! Properties: random operations on a mock clock, and the same on naive models written from the
//! documentation. Answers must be equal, to the nanosecond.
//!
//! One program, as the models are shared by the tests.

mod against_oracle;
#[cfg(feature = "calendar")]
mod calendar_against_oracle;
mod changes_mint_nothing;
mod concurrency_against_naive;
mod joint_against_oracle;
mod joint_at_cap_against_oracle;
mod joint_statuses;
mod metered;
mod meters_against_oracle;
mod own_quotas_at_cap_against_oracle;
mod refused_against_oracle;
mod reservations_against_oracle;
mod reservations_by_clocks_that_go_back;
mod shadow_dimensions;
mod statuses;
mod strategies;
mod tiers;
