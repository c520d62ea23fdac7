//! What does not fit is a compile error at the right place, which says what to write.
//!
//! The expected messages are beside the wrong uses. Those in `attribute` are the attribute's own.
//! Those in `compiler` and `keys` are worded by the compiler in part, so that another version of it
//! may need `TRYBUILD=overwrite cargo test -p messages`. Read the difference before it is committed.

#[test]
fn wrong_uses_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("attribute/*.rs");
    cases.compile_fail("compiler/*.rs");
    // Keys of the layer for tower.
    cases.compile_fail("keys/*.rs");
}
