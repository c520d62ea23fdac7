//! What does not fit is a compile error at the right place, which says what to write.
//!
//! The expected messages are beside the wrong uses, in `tests/ui`. Those of `messages` are the attribute's own. Those of
//! `compiler` are worded by the compiler in part, so that another version of it may need
//! `TRYBUILD=overwrite cargo test -p tollgate-macros --test ui`. Read the difference before it is committed.

#[test]
fn wrong_uses_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/messages/*.rs");
    cases.compile_fail("tests/ui/compiler/*.rs");
}
