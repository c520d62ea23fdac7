//! The loops of the core, found in its sources, and those that `docs/proof.md` says the end of.

use std::path::Path;

use super::{files, read, root};

/// The chapter that says why each loop ends.
const CHAPTER: &str = "\n## Every call ends\n";

/// Begins a loop whose rounds are not those of a range or a list.
const LOOPS: [&str; 5] = ["loop {", "while ", ".fetch_update(", "successors(", "repeat_with("];

/// A loop of the core: the path of its file, and its function.
type Loop = (String, String);

/// The function that a line begins, if it does.
fn function(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("fn ").filter(|(before, _)| before.is_empty() || before.ends_with(' '))?;
    Some(&rest[..rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?])
}

/// The functions of the loops of a source, once for each.
fn loops_of(source: &str) -> Vec<String> {
    let (mut found, mut within) = (vec![], "");
    for line in source.lines().map(|line| line.split("//").next().unwrap_or_default().trim_start()) {
        within = function(line).unwrap_or(within);
        let begins = LOOPS.iter().map(|sign| line.matches(sign).count()).sum();
        let is_bounded = line.contains("repeat_with(") && line.contains(".take(");
        found.extend((0..begins).filter(|_| !is_bounded).map(|_| within.to_owned()));
    }
    found
}

fn is_test(path: &Path) -> bool {
    path.iter()
        .any(|part| ["tests", "kit"].iter().any(|end| part.to_string_lossy().trim_end_matches(".rs").ends_with(end)))
}

fn loops_of_the_core() -> Vec<Loop> {
    let mut found = vec![];
    let sources = ["src/state", "src/engine", "src/modes"].iter().flat_map(|part| files(&root().join(part), ".rs"));
    for path in sources.chain(["src/state.rs", "src/engine.rs", "src/modes.rs"].map(|file| root().join(file))) {
        let name = path.strip_prefix(root()).unwrap();
        if !is_test(name) {
            found.extend(loops_of(&read(&path)).into_iter().map(|function| (name.display().to_string(), function)));
        }
    }
    found.sort();
    found
}

/// The loops that the chapter names: `- file: function, function: reason`, names between
/// backquotes. An error for each item without a reason.
fn named(proof: &str) -> Result<Vec<Loop>, String> {
    let (_, chapter) = proof.split_once(CHAPTER).ok_or("there is no such chapter")?;
    let chapter = chapter.split("\n## ").next().unwrap_or_default();
    let mut found = vec![];
    for item in chapter.split("\n- ").skip(1).map(|item| item.split("\n\n").next().unwrap_or_default()) {
        let (names, reason) = item.split_once("`: ").ok_or_else(|| format!("no reason: {item}"))?;
        let names: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
        let (file, functions) = names.split_first().ok_or_else(|| format!("no file: {item}"))?;
        if functions.is_empty() || reason.trim().is_empty() {
            return Err(format!("no function, or no reason: {item}"));
        }
        found.extend(functions.iter().map(|&function| ((*file).to_owned(), function.to_owned())));
    }
    found.sort();
    Ok(found)
}

#[test]
fn the_proof_says_of_each_loop_why_it_ends() {
    let found = loops_of_the_core();
    assert!(found.len() > 20, "{found:?}");
    assert_eq!(named(&read(&root().join("docs/proof.md"))), Ok(found), "named, and found");
}

#[test]
fn loops_are_found_with_their_functions() {
    let source = "
fn one() {
    // loop {
    for _ in 0..3 {}
    loop {
        while true {}
    }
}
pub(super) const fn two<T>(a: u64) -> u64 {
    let all = core::iter::repeat_with(make).take(3);
    a.fetch_update(relaxed, relaxed, |a| a)
}
fn three() { let _ = iter::successors(a, b); }
";
    assert_eq!(loops_of(source), ["one", "one", "two", "three"]);
}

#[test]
fn a_name_without_a_reason_is_an_error() {
    let pair = |file: &str, function: &str| (file.to_owned(), function.to_owned());
    let chapter =
        |items: &str| named(&format!("# Proof\n## Every call ends\nText.\n\n{items}\n\n## More\n- `c` `d`: no\n"));
    assert_eq!(
        chapter("- `a.rs` `x`, `y`: it ends,\n  by `z`.\n- `b.rs` `x`: too."),
        Ok(vec![pair("a.rs", "x"), pair("a.rs", "y"), pair("b.rs", "x")])
    );
    for wrong in ["- `a.rs` `x`", "- `a.rs` `x`: ", "- `a.rs`: reason"] {
        assert!(chapter(wrong).is_err(), "{wrong}");
    }
}
