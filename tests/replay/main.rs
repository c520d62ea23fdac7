//! Runs `tollgate replay` as its users do, and checks what it says against others than itself.

#![cfg(feature = "cli")]

mod decisions;
mod output;
mod support;
mod trouble;
