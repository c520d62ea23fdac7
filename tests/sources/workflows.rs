//! The workflows run scripts of the repository and nothing else, and the scripts are those that run
//! elsewhere too: a workflow can't be run here, so nothing in it may rot unseen.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Commands of workflows that neither `check` nor `.ci/run` runs: they take longer, or need what a
/// developer may not have.
const LONGER: [&str; 8] = [
    "tests/models",
    ".ci/docs",
    ".ci/miri",
    ".ci/release",
    ".ci/semver",
    ".ci/versions",
    "tests/soak",
    "tests/weaken/run",
];

fn text_of(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The files of a folder, by their paths from the root.
fn files_of(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = names.map(|name| format!("{folder}/{name}")).collect();
    files.sort();
    files
}

/// What the steps of all workflows run.
fn commands() -> Vec<String> {
    let mut commands = Vec::new();
    for file in files_of(".github/workflows") {
        let text = text_of(&file);
        let steps = text.lines().filter_map(|line| line.trim_start().trim_start_matches("- ").strip_prefix("run: "));
        let before = commands.len();
        commands.extend(steps.map(str::to_owned));
        assert!(commands.len() > before, "{file} runs nothing");
        assert!(!text.contains("run: |") && !text.contains("run: >"), "{file} has a script of its own");
    }
    commands
}

fn script(command: &str) -> &str {
    command.split_whitespace().next().unwrap().trim_start_matches("./")
}

#[test]
fn each_step_of_a_workflow_is_a_script_that_runs_elsewhere_too() {
    // The lines, so that the name of a script within a comment does not count.
    let run: BTreeSet<String> = [".ci/run", "check"].iter().flat_map(|file| lines_of(file)).collect();
    for command in commands() {
        let script = script(&command);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
        assert!(path.is_file(), "no file {script}");
        let is_run = script == "check" || run.contains(&command);
        assert!(is_run || LONGER.contains(&script), "`{command}` is in no list");
    }
    for script in LONGER {
        assert!(commands().iter().any(|command| self::script(command) == script), "no workflow runs {script}");
    }
}

fn lines_of(file: &str) -> Vec<String> {
    text_of(file).lines().map(|line| line.trim_start().to_owned()).collect()
}

#[test]
fn what_continuous_integration_runs_is_in_a_workflow() {
    let in_workflows: BTreeSet<String> = commands().iter().map(|command| script(command).to_owned()).collect();
    let steps = lines_of(".ci/run").into_iter().filter(|line| line.starts_with(".ci/") || line.starts_with("tests/"));
    let missing: Vec<String> = steps.filter(|line| !in_workflows.contains(script(line))).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(in_workflows.contains("check"));
}

#[test]
fn each_script_is_one_that_bash_or_python_reads() {
    for file in files_of(".ci").into_iter().chain(LONGER.map(str::to_owned)) {
        let is_python = file.ends_with(".py");
        let mut reader = Command::new(if is_python { "python3" } else { "bash" });
        let tree = "import ast, sys; ast.parse(open(sys.argv[1]).read())";
        reader.args(if is_python { vec!["-c", tree] } else { vec!["-n"] });
        let output = reader.arg(&file).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The workflow names the versions of Rust that the manifests state.
#[test]
fn the_workflow_installs_the_versions_of_rust_that_are_stated() {
    let workflow = text_of(".github/workflows/ci.yml");
    let manifests = ["Cargo.toml", "crates/tollgate-actix/Cargo.toml"];
    for manifest in manifests {
        let text = text_of(manifest);
        let version = text.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
        assert!(workflow.contains(&format!("toolchain: {version}\n")), "{manifest} states {version}");
    }
}
