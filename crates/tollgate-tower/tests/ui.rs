//! A key that does not fit is a compile error that says what to write.
//!
//! The expected messages are beside the wrong uses, in `tests/ui`. They are worded by the compiler in part, so that
//! another version of it may need `TRYBUILD=overwrite cargo test -p tollgate-tower --test ui`. Read the
//! difference before it is committed.

#[test]
fn keys_that_do_not_fit_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

/// The texts for a trait that is not implemented, in a file of `crates`.
fn texts(file: &str) -> Vec<String> {
    let file = format!("{}/../{file}", env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(file).unwrap();
    let texts = source.split("#[diagnostic::on_unimplemented(").skip(1);
    texts.map(|text| text.split_once(")]").unwrap().0.to_owned()).collect()
}

/// Its crate would need minutes to compile such uses.
#[test]
fn the_middleware_for_actix_web_has_the_same_texts() {
    for (file, count) in [("gate.rs", 2), ("key.rs", 1), ("key/tuples.rs", 1)] {
        let [tower, actix] = ["tower", "actix"].map(|name| texts(&format!("tollgate-{name}/src/{file}")));
        assert_eq!((actix.len(), actix), (count, tower), "{file}");
    }
}
