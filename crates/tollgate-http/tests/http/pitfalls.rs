//! The tests that the page of pitfalls names are there.

use std::fs;
use std::path::Path;

/// The sources of the tests of a crate, one after the other.
fn sources(directory: &Path) -> String {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.fold(String::new(), |all, path| {
        all + &if path.is_dir() { sources(&path) } else { fs::read_to_string(path).unwrap() }
    })
}

/// The functions of a path such as `a::b` or `a::{b, c}`.
fn functions(path: &str) -> impl Iterator<Item = &str> {
    let last = match path.split_once('{') {
        Some((_, several)) => several.trim_end_matches('}'),
        None => path.rsplit("::").next().unwrap(),
    };
    last.split(", ")
}

#[test]
fn each_pitfall_has_its_tests() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let of = |name: &str| sources(&crates.join(name).join("tests"));
    let [http, tower, actix] = ["tollgate-http", "tollgate-tower", "tollgate-actix"].map(of);
    let rows = include_str!("../../PITFALLS.md").lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut count = 0;
    for row in rows {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for group in tests.split("; ") {
            let (sources, paths) = match group.split_once(": ") {
                Some(("tower", paths)) => (&tower, paths),
                Some(("actix", paths)) => (&actix, paths),
                _ => (&http, group),
            };
            for path in paths.split("`, `") {
                for function in functions(path.trim_matches('`')) {
                    assert!(sources.contains(&format!("fn {function}(")), "{function} in {group}");
                    count += 1;
                }
            }
        }
        assert!(count > 0, "{row}");
    }
    assert!(count > 30, "{count}");
}
