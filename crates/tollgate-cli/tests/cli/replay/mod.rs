//! Runs `tollgate replay` as its users do, and checks what it says against others than itself.

mod beside;
mod browser;
mod check;
mod compare;
mod decisions;
mod json_logs;
mod logs;
mod messages;
mod naive;
mod options;
mod output;
mod pages;
mod pages_drawn;
mod penalty;
mod policy;
mod selection;
mod suggest;
mod support;
mod too_big;
mod trouble;
