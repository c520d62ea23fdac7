//! Each example prints the text that its head says it prints, as those of the limiters do.

#[path = "../../../../tests/examples.rs"]
mod of_the_limiters;
