//! Counts the instructions of a request under valgrind.

use std::hint::black_box;
use std::net::SocketAddr;
use std::process::Command;

use crate::contender::Name;
use crate::rounds::Turns;
use crate::scenario::Scenario;

/// The function in which instructions are counted, as callgrind calls it.
const COUNTED: &str = "*http_layers::valgrind::counted*";

/// Requests that instructions are counted for.
const COUNTED_TIMES: usize = 200;

/// The instructions of a request; `None` if there is no valgrind here, or the contender does not
/// take part.
///
/// # Errors
///
/// When valgrind fails, or says something unexpected.
pub fn instructions(name: Name, scenario: Scenario) -> Result<Option<f64>, Box<dyn std::error::Error>> {
    if !name.takes_part(scenario) || Command::new("valgrind").arg("--version").output().is_err() {
        return Ok(None);
    }
    let place = Scenario::all().iter().position(|of| *of == scenario).ok_or("an unknown scenario")?;
    let contender = Name::ALL.iter().position(|of| *of == name).ok_or("an unknown contender")?;
    let out = std::env::temp_dir().join(format!("http-layers-{}.out", std::process::id()));
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", &format!("--toggle-collect={COUNTED}")]);
    command.arg(format!("--callgrind-out-file={}", out.display())).arg(std::env::current_exe()?);
    command.args(["--repeat", &format!("{place},{contender}")]);
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = std::fs::read_to_string(&out)?;
    std::fs::remove_file(&out)?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ")).ok_or("no totals")?;
    let total: u32 = total.trim().parse()?;
    if total == 0 {
        return Err(format!("callgrind did not see {COUNTED}").into());
    }
    Ok(Some(f64::from(total) / COUNTED_TIMES as f64))
}

/// What runs under valgrind: the requests of a contender in a scenario, by their places.
pub fn repeat(scenario: usize, contender: usize) {
    let (Some(&scenario), Some(&name)) = (Scenario::all().get(scenario), Name::ALL.get(contender)) else { return };
    let mut turns = Turns::new(name, scenario);
    let warm_up = turns.next(COUNTED_TIMES);
    turns.send(&warm_up);
    let clients = turns.next(COUNTED_TIMES);
    counted(&turns, &clients);
}

#[inline(never)]
fn counted(turns: &Turns, clients: &[SocketAddr]) {
    turns.send(black_box(clients));
}
