//! Runs a path under valgrind, and reads what its tools have to say.
//!
//! Three questions, three sources: *callgrind* counts how often each instruction of a decision was
//! executed; *objdump* knows which of them are locked; *lackey* traces every store with its
//! address.
//!
//! `gungraun` has no lackey, and the sum that it would count is in the profile that tells the locked
//! instructions: a second run of each path, by a runner that is built from 152 packages.

use std::collections::{HashMap, HashSet};
use std::process::Command;

use benches::valgrind::{Valgrind, total};

use crate::repeat::{COUNTED, Landmarks};

/// Decisions that instructions are counted for: enough that what a new key now and then allocates
/// is spread.
pub(crate) const COUNTED_TIMES: usize = 1_000;
/// Decisions that stores are traced for; each instruction since the program's start makes a line.
const TRACED_TIMES: usize = 50;
/// How far below the frame of `main` a decision's own frames may be.
const STACK: usize = 1 << 20;

/// What one decision takes, on average.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Counts {
    /// Instructions.
    pub(crate) instructions: f64,
    /// Of them, those with a `lock` prefix, exchanges with memory, which lock without one, and full
    /// fences.
    pub(crate) locked: f64,
    /// Stores to anything but the thread's own stack.
    pub(crate) stores: f64,
}

/// Counts by tools that run this program.
pub(crate) struct Counter {
    valgrind: Valgrind,
    /// Addresses of locked instructions, by object.
    locked: HashMap<String, HashSet<u64>>,
}

impl Counter {
    /// Whether the tools are there at all; if not, what is missing.
    pub(crate) fn find() -> Result<Self, String> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err("this is not Linux on x86-64, which the figures are of".into());
        }
        Command::new("objdump").arg("--version").output().map_err(|_| "there is no `objdump` here")?;
        let valgrind = Valgrind::find()?.ok_or("there is no `valgrind` here")?;
        Ok(Self { valgrind, locked: HashMap::new() })
    }

    /// What a decision on the path of this name takes.
    pub(crate) fn count(&mut self, path: &str) -> Result<Counts, String> {
        let executed = self.callgrind(path)?;
        let each = |total: u64| total as f64 / COUNTED_TIMES as f64;
        let mut locked = 0;
        for ((object, address), times) in &executed {
            if self.locked_in(object)?.contains(address) {
                locked += times;
            }
        }
        Ok(Counts {
            instructions: each(executed.values().sum()),
            locked: each(locked),
            stores: self.lackey(path)? as f64 / TRACED_TIMES as f64,
        })
    }

    /// How often each instruction, by object and address, was executed in all decisions together.
    fn callgrind(&self, path: &str) -> Result<HashMap<(String, u64), u64>, String> {
        let options = ["--dump-instr=yes", "--dump-line=no", "--compress-strings=no", "--compress-pos=no"];
        let arguments = ["repeat", path, &COUNTED_TIMES.to_string()];
        read_callgrind(&self.valgrind.callgrind(COUNTED, &options, &arguments)?.written)
    }

    /// Stores in all decisions together, but for those to the stack.
    fn lackey(&self, path: &str) -> Result<usize, String> {
        let tool = ["--tool=lackey", "--trace-mem=yes"];
        let ran = self.valgrind.run(&tool, "--log-file", &["repeat", path, &TRACED_TIMES.to_string()])?;
        let landmarks = Landmarks::parse(&ran.printed).ok_or("the traced program printed no landmarks")?;
        read_lackey(&ran.written, &landmarks)
    }

    fn locked_in(&mut self, object: &str) -> Result<&HashSet<u64>, String> {
        if !self.locked.contains_key(object) {
            let mut command = Command::new("objdump");
            command.args(["--disassemble", "--no-show-raw-insn", object]);
            let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
            let found = read_objdump(&String::from_utf8_lossy(&output.stdout));
            if !output.status.success() || found.is_empty() {
                return Err(format!("{command:?} shows no locked instruction; every program has some"));
            }
            self.locked.insert(object.into(), found);
        }
        Ok(&self.locked[object])
    }
}

/// Format: <https://valgrind.org/docs/manual/cl-format.html>, uncompressed, with one position (the
/// address) and one cost.
fn read_callgrind(text: &str) -> Result<HashMap<(String, u64), u64>, String> {
    let mut executed = HashMap::new();
    let (mut object, mut after_calls) = (String::new(), false);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("ob=") {
            object = name.into();
        } else if line.starts_with("calls=") {
            // What follows is what the call cost in all, which is in the lines of the function that
            // was called, too.
            after_calls = true;
        } else if let Some(cost) = line.strip_prefix("0x")
            && !std::mem::take(&mut after_calls)
        {
            let read = || {
                let (address, times) = cost.split_once(' ')?;
                Some((u64::from_str_radix(address, 16).ok()?, times.trim().parse::<u64>().ok()?))
            };
            let (address, times) = read().ok_or_else(|| format!("callgrind: what is `{line}`?"))?;
            *executed.entry((object.clone(), address)).or_insert(0) += times;
        }
    }
    let (expected, listed) = (total(text), executed.values().sum::<u64>());
    if listed == 0 || expected != Some(listed) {
        return Err(format!("callgrind says {expected:?} instructions in all, but those it lists make {listed}"));
    }
    Ok(executed)
}

/// Addresses of what locks a cache line, or is a full fence and costs as much.
fn read_objdump(text: &str) -> HashSet<u64> {
    let instruction = |line: &str| {
        let (address, rest) = line.trim_start().split_once(":\t")?;
        let mut words = rest.split_whitespace();
        let name = words.next()?;
        // Between registers only, an exchange locks nothing.
        let exchanges = name.starts_with("xchg") && rest.contains('(');
        (matches!(name, "lock" | "mfence") || exchanges).then(|| u64::from_str_radix(address, 16).ok())?
    };
    text.lines().filter_map(instruction).collect()
}

/// Stores between landmarks that do not go to the stack.
fn read_lackey(trace: &str, landmarks: &Landmarks) -> Result<usize, String> {
    // What has been seen since the last beginning.
    let mut deciding = None;
    let (mut decisions, mut stores) = (0, 0);
    let stack = landmarks.top_of_stack.saturating_sub(STACK)..=landmarks.top_of_stack;
    for line in trace.lines() {
        let Some(access) = line.strip_prefix(" S ").or_else(|| line.strip_prefix(" M ")) else { continue };
        let address = access.split_once(',').and_then(|(address, _)| usize::from_str_radix(address, 16).ok());
        let address = address.ok_or_else(|| format!("lackey: what is `{line}`?"))?;
        if address == landmarks.begin {
            deciding = Some(0);
        } else if address == landmarks.end {
            decisions += usize::from(deciding.is_some());
            stores += deciding.take().unwrap_or(0);
        } else if let Some(seen) = &mut deciding {
            *seen += usize::from(!stack.contains(&address));
        }
    }
    if decisions != TRACED_TIMES {
        return Err(format!("{decisions} decisions were seen in the trace, of {TRACED_TIMES}"));
    }
    Ok(stores)
}
