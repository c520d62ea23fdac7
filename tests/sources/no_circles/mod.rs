//! No module imports one that imports it, directly or by way of others: data flows one way.
//!
//! The modules of a crate are found by the `mod` declarations from its root on. One module depends
//! on another if it has a `use` of it, or a path such as `super::Name` or `child::function` in its
//! code. A name that a module only passes on (`pub use`) belongs to the module that defines it. A
//! declaration `mod child` is no dependency, and tests are left out.
//!
//! To `cargo modules dependencies --acyclic` two modules that import each other are no circle, since
//! its arrows lead to the items and not to their module; it reads no bodies of functions, and is built
//! from 277 packages. `cargo-cycles` has two unstable releases. This runs with all other tests.

mod circles;
mod modules;
mod tokens;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use circles::circles;
use modules::Modules;

/// The folders with packages.
const FOLDERS: &[&str] = &["crates", "examples", "tests"];

/// The roots of the libraries and programs of all packages of the workspace, and what else their
/// manifests name.
fn roots() -> Vec<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = FOLDERS.iter().flat_map(|folder| files_in(&workspace.join(folder)));
    let packages = folders
        .filter(|folder| folder.join("Cargo.toml").exists())
        .chain([workspace.to_owned(), workspace.join("benches")]);
    let mut roots: Vec<PathBuf> = packages
        .flat_map(|package| {
            let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
            let paths = manifest.lines().filter_map(|line| line.strip_prefix("path = \"")?.strip_suffix('"'));
            let named = ["src/lib.rs", "src/main.rs"].into_iter().chain(paths).map(|root| package.join(root));
            named.chain(files_in(&package.join("src/bin"))).collect::<Vec<_>>()
        })
        .filter(|root| root.extension().is_some_and(|extension| extension == "rs") && root.is_file())
        .collect();
    roots.sort();
    roots
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn no_module_imports_itself_by_way_of_others() {
    let found: String = roots().iter().flat_map(|root| circles(&Modules::of(root))).collect();
    assert!(found.is_empty(), "circles of modules:\n{found}");
}

/// Each package of the workspace has a line in the lock file that says no source.
#[test]
fn every_crate_of_the_workspace_is_looked_at() {
    let lock = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock")).unwrap();
    let packages = lock.split("[[package]]").skip(1).filter(|package| !package.contains("\nsource = "));
    let roots = roots();
    let looked_at: BTreeSet<String> = roots
        .iter()
        .map(|root| {
            let folder = root.ancestors().find(|folder| folder.join("Cargo.toml").exists()).unwrap();
            name_in(&fs::read_to_string(folder.join("Cargo.toml")).unwrap()).to_owned()
        })
        .collect();
    let all: BTreeSet<String> = packages.map(|package| name_in(package).to_owned()).collect();
    assert!(all.len() > 15, "{all:?}");
    assert_eq!(looked_at, all);
}

/// The name of the package in a manifest, or in a part of the lock file.
fn name_in(toml: &str) -> &str {
    toml.lines().find_map(|line| line.strip_prefix("name = ")).expect("a name").trim_matches('"')
}

/// The circles among files of these names and texts.
fn circles_among(name: &str, files: &[(&str, &str)]) -> String {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("circles-{name}-{}", std::process::id()));
    for (file, text) in files {
        let path = directory.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let found = circles(&Modules::of(&directory.join(files[0].0))).concat();
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
fn a_name_of_another_crate_that_is_passed_on_belongs_to_no_module() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a.rs", "mod one; use one::One; pub use outside::Item;"),
        ("a/one.rs", "use super::Item; pub struct One;"),
    ];
    assert_eq!(circles_among("outside", &files), "");
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
