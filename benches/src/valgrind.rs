//! Runs the program itself again under tools of valgrind.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The tools, and a folder for what they write.
#[derive(Debug)]
pub struct Valgrind {
    program: PathBuf,
    scratch: PathBuf,
}

/// What came of a run.
#[derive(Debug)]
pub struct Ran {
    /// What the program printed.
    pub printed: String,
    /// What the tool wrote.
    pub written: String,
}

impl Valgrind {
    /// Valgrind, if there is one here.
    ///
    /// # Errors
    ///
    /// When no folder can be made.
    pub fn find() -> Result<Option<Self>, String> {
        if Command::new("valgrind").arg("--version").output().is_err() {
            return Ok(None);
        }
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let scratch = std::env::temp_dir().join(format!("tollgate-valgrind-{}", std::process::id()));
        fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
        Ok(Some(Self { program, scratch }))
    }

    /// Runs the program with these arguments under callgrind, which looks only at functions of this
    /// name and at what they call.
    ///
    /// # Errors
    ///
    /// When the program or the tool fails.
    pub fn callgrind(&self, counted: &str, options: &[&str], arguments: &[&str]) -> Result<Ran, String> {
        let toggle = format!("--toggle-collect={counted}");
        self.run(&[&["--tool=callgrind", &toggle], options].concat(), "--callgrind-out-file", arguments)
    }

    /// Runs the program with these arguments under a tool with these options; one more has the file
    /// to which the tool writes.
    ///
    /// # Errors
    ///
    /// When the program or the tool fails.
    pub fn run(&self, tool: &[&str], out_option: &str, arguments: &[&str]) -> Result<Ran, String> {
        let out = self.scratch.join("out");
        let mut command = Command::new("valgrind");
        command.args(tool).arg(format!("{out_option}={}", out.display())).arg(&self.program).args(arguments);
        let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
        if !output.status.success() {
            return Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let written = fs::read_to_string(&out).map_err(|error| format!("{}: {error}", out.display()))?;
        fs::remove_file(&out).map_err(|error| format!("{}: {error}", out.display()))?;
        Ok(Ran { printed: String::from_utf8_lossy(&output.stdout).into_owned(), written })
    }
}

impl Drop for Valgrind {
    fn drop(&mut self) {
        // What can't be removed is in the directory for such things.
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

/// The instructions that callgrind counted in all.
#[must_use]
pub fn total(callgrind: &str) -> Option<u64> {
    callgrind.lines().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
}
