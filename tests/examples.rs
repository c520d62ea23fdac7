//! Each example prints the text that its head says it prints.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The text between the lines "```text" and "```" in the head of a program.
fn expected(source: &str) -> Option<String> {
    let head = source.lines().map_while(|line| line.strip_prefix("//!"));
    let mut lines = head.map(|line| line.strip_prefix(' ').unwrap_or(line)).skip_while(|line| *line != "```text");
    lines.next()?;
    let block: Vec<&str> = lines.take_while(|line| *line != "```").collect();
    Some(block.join("\n") + "\n")
}

/// Cargo builds examples beside the directory that this test lies in.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let profile = test.parent().and_then(Path::parent).expect("target/PROFILE/deps");
    profile.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION)
}

#[test]
fn examples_print_their_documented_output() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut checked = 0;
    for entry in std::fs::read_dir(folder).expect("examples") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("the source of an example");
        let name = path.file_stem().expect("a name").to_str().expect("an ASCII name");
        let Some(expected) = expected(&source) else { continue };
        let program = program(name);
        if !program.exists() {
            eprintln!("SKIPPED {name}: it was not built; run `cargo test --all-features`");
            continue;
        }
        let output = Command::new(&program).output().expect("the example runs");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{name}");
        checked += 1;
    }
    let least = if env!("CARGO_PKG_NAME") == "tollgate" { 10 } else { 2 };
    assert!(checked >= least, "{checked} examples were checked");
}
