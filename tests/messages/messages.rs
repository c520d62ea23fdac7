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

/// The texts for a trait that is not implemented, in a file of `crates`.
fn texts(file: &str) -> Vec<String> {
    let file = format!("{}/../../crates/{file}", env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(file).unwrap();
    let texts = source.split("#[diagnostic::on_unimplemented(").skip(1);
    texts.map(|text| text.split_once(")]").unwrap().0.to_owned()).collect()
}

/// Its crate would need minutes to compile such uses.
#[test]
fn the_middleware_for_actix_web_has_the_same_texts() {
    for (file, count) in [("gate.rs", 2), ("key/extractor.rs", 1), ("key/tuples.rs", 1)] {
        let [tower, actix] = ["tower", "actix"].map(|name| texts(&format!("tollgate-{name}/src/{file}")));
        assert_eq!((actix.len(), actix), (count, tower), "{file}");
    }
}
