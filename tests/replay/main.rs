//! Runs `tollgate replay` as its users do, and checks what it says against others than itself.

#![cfg(feature = "cli")]

mod decisions;
mod naive;
mod options;
mod output;
mod policy;
mod support;
mod trouble;
