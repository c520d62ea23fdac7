//! What one limiter adds to a program, beside one of governor: the bytes of stripped programs, with
//! thin LTO and one unit of code generation for each crate.
//!
//! ```sh
//! cargo run --release -p benches -- size
//! ```

use std::error::Error;
use std::fs::metadata;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    // Beside other builds: these have another profile.
    let target = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/size");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--profile", "bench", "--config", "profile.bench.strip=true"]);
    command.args(["--package", "benches", "--features", "size", "--target-dir", target]);
    command.args(["--bin", "size_of_none", "--bin", "size_of_one", "--bin", "size_of_governor"]);
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    if !command.status()?.success() {
        return Err(format!("{command:?} failed").into());
    }
    let bytes = |name: &str| metadata(format!("{target}/release/{name}")).map(|file| file.len());
    let none = bytes("size_of_none")?;
    for (name, program) in [("tollgate", "size_of_one"), ("governor", "size_of_governor")] {
        println!("{name}: {} KB more than without a limiter", bytes(program)?.saturating_sub(none) / 1000);
    }
    Ok(())
}
