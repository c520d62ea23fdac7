//! The programs of this package, as others of them run them.

use std::error::Error;
use std::process::{Command, Stdio};

/// Each program, and the feature that brings what it needs. Those that count bytes are programs of
/// their own because counting costs time at every allocation.
pub const ALL: [(&str, &str); 9] = [
    ("side_by_side", "side_by_side"),
    ("memory", "side_by_side"),
    ("clocks", "side_by_side"),
    ("in_flight", "in_flight"),
    ("http_layers", "http_layers"),
    ("allocations", "http_layers"),
    ("size", "size"),
    ("waits", "waits"),
    ("served", "served"),
];

/// Builds and runs a program.
///
/// # Errors
///
/// When there is no such program, or it fails.
pub fn run(name: &str, arguments: &[String]) -> Result<(), Box<dyn Error>> {
    printed_to(Stdio::inherit(), name, arguments).map(|_| ())
}

/// Builds and runs a program, and gives what it printed.
///
/// # Errors
///
/// When there is no such program, or it fails.
pub fn printed_by(name: &str, arguments: &[String]) -> Result<String, Box<dyn Error>> {
    printed_to(Stdio::piped(), name, arguments)
}

fn printed_to(stdout: Stdio, name: &str, arguments: &[String]) -> Result<String, Box<dyn Error>> {
    let Some((_, feature)) = ALL.iter().find(|(of, _)| *of == name) else {
        return Err(format!("no such program; there are: {}", ALL.map(|(of, _)| of).join(", ")).into());
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args([
        "run",
        "--release",
        "--quiet",
        "--manifest-path",
        concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
    ]);
    command.args(["--features", feature, "--bin", name, "--"]).args(arguments);
    let output = command.stdin(Stdio::inherit()).stdout(stdout).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{command:?} failed").into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
