//! The committed figures, and how far from them a count may be.

use std::fmt::Write as _;
use std::process::Command;

use crate::valgrind::Counts;

/// How to accept new figures.
pub(crate) const ACCEPT: &str = "cargo bench -p benches -- --accept";

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions/figures.tsv");

/// By the compiler that the figures are of, counts repeat exactly, but for what the system's
/// allocator and `memcpy` do.
const SAME_COMPILER: f64 = 0.02;
/// Another one may inline and allocate registers as it likes.
const ANOTHER_COMPILER: f64 = 0.15;

/// What was counted when somebody last accepted it.
pub(crate) struct Figures {
    /// What `rustc --version` said then.
    pub(crate) compiler: String,
    paths: Vec<(String, Counts)>,
}

impl Figures {
    /// From the file.
    pub(crate) fn read() -> Result<Self, String> {
        let text = std::fs::read_to_string(FILE).map_err(|error| format!("{FILE}: {error}"))?;
        let mut figures = Self { compiler: "no rustc".into(), paths: Vec::new() };
        for line in text.lines() {
            if let Some(compiler) = line.strip_prefix("# counted with ") {
                figures.compiler = compiler.into();
            } else if !line.starts_with('#') {
                let read = || {
                    let mut fields = line.split('\t');
                    let name = fields.next()?;
                    let mut number = || fields.next()?.parse().ok();
                    let counts = Counts { instructions: number()?, locked: number()?, stores: number()? };
                    Some((name.to_owned(), counts))
                };
                figures.paths.push(read().ok_or_else(|| format!("{FILE}: what is `{line}`?"))?);
            }
        }
        Ok(figures)
    }

    /// To the file.
    pub(crate) fn write(compiler: &str, counted: &[(&str, Counts)]) -> Result<(), String> {
        let mut text = format!(
            "# What one decision takes, on average: instructions; of them locked ones; stores to other memory than the stack.\n\
             # Written by `{ACCEPT}`; compared by `cargo bench -p benches`.\n\
             # counted with {compiler}\n"
        );
        for (name, Counts { instructions, locked, stores }) in counted {
            let _ = writeln!(text, "{name}\t{instructions:.1}\t{locked:.1}\t{stores:.1}");
        }
        std::fs::write(FILE, text).map_err(|error| format!("{FILE}: {error}"))
    }

    pub(crate) fn of(&self, path: &str) -> Option<Counts> {
        self.paths.iter().find(|(name, _)| name == path).map(|&(_, counts)| counts)
    }

    /// How much more than the committed figure is let pass.
    pub(crate) fn tolerance(&self, compiler: &str) -> f64 {
        if self.compiler == compiler { SAME_COMPILER } else { ANOTHER_COMPILER }
    }
}

/// What the compiler calls itself.
pub(crate) fn compiler() -> Result<String, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().map_err(|error| format!("rustc --version: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().into())
}

/// Complains of what has become more, and notes what has become less.
pub(crate) fn compare(
    name: &str,
    before: Counts,
    now: Counts,
    tolerance: f64,
    complaints: &mut Vec<String>,
    gains: &mut Vec<String>,
) {
    let columns = [
        ("instructions", before.instructions, now.instructions, tolerance),
        // These no compiler may add to, but the first decisions of a new chunk of memory are not
        // the same everywhere.
        ("locked instructions", before.locked, now.locked, SAME_COMPILER),
        ("stores to shared memory", before.stores, now.stores, SAME_COMPILER),
    ];
    for (what, before, now, tolerance) in columns {
        let said = format!("{name}: {now:.1} {what} a decision, where {before:.1} are committed");
        let change =
            if before > 0.0 { format!("{:+.1} %", (now / before - 1.0) * 100.0) } else { "from nothing".into() };
        // Figures are committed to one decimal.
        let slack = before * tolerance + 0.05;
        if now > before + slack {
            complaints.push(format!("{said} ({change}; {:.0} % are let pass)", tolerance * 100.0));
        } else if now < before - slack {
            gains.push(format!("{said} ({change})"));
        }
    }
}
