//! Counts the instructions of a request under valgrind.

use std::hint::black_box;
use std::net::SocketAddr;

use crate::http_layers::contender::Name;
use crate::http_layers::rounds::Turns;
use crate::http_layers::scenario::Scenario;
use crate::valgrind::{self, Valgrind};

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
    if !name.takes_part(scenario) {
        return Ok(None);
    }
    let Some(valgrind) = Valgrind::find()? else { return Ok(None) };
    let place = Scenario::all().iter().position(|of| *of == scenario).ok_or("an unknown scenario")?;
    let contender = Name::ALL.iter().position(|of| *of == name).ok_or("an unknown contender")?;
    let ran = valgrind.callgrind(COUNTED, &[], &["--repeat", &format!("{place},{contender}")])?;
    match valgrind::total(&ran.written) {
        Some(total @ 1..) => Ok(Some(total as f64 / COUNTED_TIMES as f64)),
        _ => Err(format!("callgrind did not see {COUNTED}").into()),
    }
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
