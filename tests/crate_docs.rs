//! The documentation of the crate agrees with what it repeats: the manifest, and code that is compiled elsewhere.

use std::fs;
use std::path::Path;

fn text_of(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The documentation at the head of `src/lib.rs`.
fn docs() -> String {
    let source = text_of("src/lib.rs");
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect()
}

/// The lines of a text between one that is `start` and the next that begins with `end`.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    let after = text.lines().skip_while(|line| *line != start).skip(1);
    after.take_while(|line| !line.starts_with(end)).collect()
}

#[test]
fn the_table_of_features_is_that_of_the_manifest() {
    let manifest = text_of("Cargo.toml");
    let names = between(&manifest, "[features]", "[").into_iter().filter_map(|line| line.split_once(" = "));
    let mut declared: Vec<&str> = names.map(|(name, _)| name).filter(|name| *name != "default").collect();
    let docs = docs();
    let rows = between(&docs, "# Features", "The program").into_iter().filter_map(|line| line.strip_prefix("| `"));
    let mut told: Vec<&str> = rows.map(|row| row.split_once('`').unwrap().0).collect();
    declared.sort_unstable();
    told.sort_unstable();
    assert!(!told.is_empty());
    assert_eq!(told, declared);
}

#[test]
fn the_version_of_rust_is_that_of_the_manifest() {
    let manifest = text_of("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(docs().contains(&format!("Rust {version} or later")), "{version}");
}

#[test]
fn the_recipe_for_axum_is_compiled_as_the_example_of_the_crate_for_tower() {
    let compiled = text_of("crates/tollgate-tower/README.md");
    let docs = docs();
    let axum = between(&docs, "## axum", "## ").join("\n");
    let recipe = between(&axum, "```text", "```");
    assert!(recipe.len() > 3, "{axum}");
    for line in recipe {
        assert!(compiled.lines().any(|other| other.trim() == line.trim()), "not in the example: {line}");
    }
}
