//! Runs a program of this package, or all that write tables into BENCHMARKS.md and README.md:
//!
//! ```sh
//! cargo run --release -p benches -- report
//! cargo run --release -p benches -- PROGRAM [ARGUMENTS]
//! ```

use std::error::Error;

use benches::documents::Document;
use benches::programs;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [] => Err(format!("write: report, or one of {}", programs::ALL.map(|(name, _)| name).join(", ")).into()),
        [name] if name == "report" => report(),
        [name, arguments @ ..] => programs::run(name, arguments),
    }
}

/// Each table that is between marks, and the plots.
fn report() -> Result<(), Box<dyn Error>> {
    for name in ["side_by_side", "http_layers"] {
        programs::run(name, &["--report".into()])?;
    }
    for name in ["in_flight", "waits", "served"] {
        let table = programs::printed_by(name, &[])?;
        let mut benchmarks = Document::open("BENCHMARKS.md")?;
        benchmarks.put(name, &table)?;
        benchmarks.save()?;
    }
    Ok(())
}
