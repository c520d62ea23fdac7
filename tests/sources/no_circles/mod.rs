//! No module imports one that imports it, directly or by way of others: data flows one way.
//!
//! The modules of a directory are found by the `mod` declarations from its `main.rs` or `lib.rs`
//! on. One module depends on another if it has a `use` of it, or a path such as `super::Name` or
//! `child::function` in its code. A name that a module only passes on (`pub use`) belongs to the
//! module that defines it. A declaration `mod child` is no dependency, and tests are left out.

mod circles;
mod modules;
mod tokens;

use std::fs;
use std::path::Path;

use circles::circles;
use modules::Modules;

/// The directories that are checked. Each has a `main.rs` or a `lib.rs`.
const DIRECTORIES: &[&str] =
    &["src", "crates/tollgate-cli/src", "crates/tollgate-policy/src", "crates/tollgate-serve/src"];

#[test]
fn no_module_imports_itself_by_way_of_others() {
    let mut found = String::new();
    for directory in DIRECTORIES {
        found += &circles(&Modules::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join(directory)));
    }
    assert!(found.is_empty(), "circles of modules:\n{found}");
}

/// The circles among files of these names and texts.
fn circles_among(name: &str, files: &[(&str, &str)]) -> String {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("circles-{name}-{}", std::process::id()));
    for (file, text) in files {
        let path = directory.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let found = circles(&Modules::of(&directory));
    fs::remove_dir_all(&directory).unwrap();
    found
}

#[test]
fn modules_that_import_each_other_are_a_circle() {
    let files = [
        ("main.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::{self, deep::{B, More}};"),
        ("b.rs", "// use crate::a::A;\n/* use crate::a::A; */ use super::c::C as Other;"),
        ("c.rs", "fn f() { let text = \"crate::d::D\"; crate::a::f::<u8>(); }"),
        ("d.rs", "use crate::{a::A, c::*};"),
    ];
    let found = circles_among("three", &files);
    assert!(found.starts_with("a -> b -> c -> a\n"), "{found}");
    assert!(found.contains("c.rs:1: crate::a::f"), "{found}");
    assert_eq!(found.matches(" -> ").count(), 3, "d is in no circle: {found}");
}

#[test]
fn every_circle_is_found() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use super::b::B; use super::c::C;"),
        ("b.rs", "use super::a::A;"),
        ("c.rs", "use super::a::A;"),
    ];
    let found = circles_among("two", &files);
    assert!(found.contains("a -> b -> a\n") && found.contains("a -> c -> a\n"), "{found}");
}

#[test]
fn a_parent_and_a_child_are_a_circle_if_each_uses_the_other() {
    let child = ("a/child.rs", "use super::Item;\npub fn f() {}");
    let uses = |parent: &'static str| [("main.rs", "mod a;"), ("a.rs", parent), child];
    assert_eq!(circles_among("declared", &uses("mod child; struct Item;")), "");
    for (name, parent) in [
        ("path", "mod child; struct Item; fn g() { child::f(); }"),
        ("use", "mod child; use child::f; struct Item;"),
        ("self", "mod child; struct Item; pub use self::child::f;"),
    ] {
        assert!(circles_among(name, &uses(parent)).starts_with("a -> a::child -> a\n"), "{name}");
    }
}

#[test]
fn a_name_that_is_passed_on_belongs_to_the_module_that_defines_it() {
    let files = [
        ("main.rs", "mod a; pub use a::Item;"),
        ("a.rs", "mod one; mod two; pub use one::Item; pub(crate) use two::f as g;"),
        ("a/one.rs", "pub struct Item;"),
        ("a/two.rs", "use super::Item; use crate::Item as Same; pub fn f() {}"),
    ];
    assert_eq!(circles_among("passed-on", &files), "");
}

#[test]
fn tests_and_modules_within_a_file_depend_on_nothing_of_their_own() {
    let files = [
        ("main.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; mod inner { use super::super::a::X; use super::Y; } struct Y;"),
        ("b.rs", "#[cfg(all(test, unix))] mod tests { use crate::a::A; }\n#[cfg(test)] use crate::a::A; struct B;"),
    ];
    assert_eq!(circles_among("tests", &files), "");
    let inner = ("b.rs", "mod inner { use super::super::a::A; }");
    assert!(circles_among("inner", &[files[0], files[1], inner]).starts_with("a -> b -> a\n"));
}
