//! Each example prints the text that its head says it prints.

#[test]
fn examples_print_their_documented_output() {
    tollgate_kit::programs::examples_print_what_they_say(env!("CARGO_MANIFEST_DIR"), 2);
}
