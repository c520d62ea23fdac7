//! Programs that tests start.

use std::io::Write as _;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A program that is ended with the test, if it has not ended by itself.
pub struct Process(pub Child);

impl Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Says loudly that a test is skipped, past the test harness, which keeps what tests print.
pub fn skipped(why: &str) {
    writeln!(std::io::stderr(), "\nSKIPPED: {why}").expect("the standard error takes a line");
}

/// Whether a program is there. If not, says that the test is skipped.
pub fn is_there(program: &str, option: &str) -> bool {
    let found = Command::new(program).arg(option).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        skipped(&format!("there is no {program} here"));
    }
    found
}

/// An example of the tested package, if it was built: cargo builds examples beside the directory
/// that the test lies in.
pub fn example(name: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().expect("the path of this test");
    let profile = test.parent().and_then(Path::parent).expect("target/PROFILE/deps");
    let program = profile.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION);
    program.exists().then_some(program)
}

/// The text between the lines "```text" and "```" in the head of a program.
fn expected(source: &str) -> Option<String> {
    let head = source.lines().map_while(|line| line.strip_prefix("//!"));
    let mut lines = head.map(|line| line.strip_prefix(' ').unwrap_or(line)).skip_while(|line| *line != "```text");
    lines.next()?;
    let block: Vec<&str> = lines.take_while(|line| *line != "```").collect();
    Some(block.join("\n") + "\n")
}

/// Each example of a package prints the text that its head says it prints, at least so many of them.
pub fn examples_print_what_they_say(package: &str, least: usize) {
    let mut checked = 0;
    for entry in std::fs::read_dir(Path::new(package).join("examples")).expect("examples") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("the source of an example");
        let name = path.file_stem().expect("a name").to_str().expect("an ASCII name");
        let Some(expected) = expected(&source) else { continue };
        // Those that are tests of their own are not built.
        let Some(program) = example(name) else { continue };
        let output = Command::new(&program).output().expect("the example runs");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{name}");
        checked += 1;
    }
    assert!(checked >= least, "{checked} examples were checked");
}
