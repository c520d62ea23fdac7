//! The `tollgate` command-line program: what would a rate limit have done to the traffic in a log?

mod args;
mod decisions;
mod errors;
mod filter;
mod formats;
mod input;
mod key;
mod log;
mod plan;
mod plot;
mod progress;
mod reading;
mod replay;
mod report;
mod run;
mod sample;
mod suggest;
mod terminal;
mod time;
mod timeline;
mod words;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let result = match args::Cli::parse().command {
        args::Command::Replay(args) => run::replay(&args),
        args::Command::Suggest(args) => suggest::suggest(&args),
        args::Command::Sample(args) => sample::print(&args).map(|()| run::Ending::Complete),
    };
    match result {
        Ok(ending) => ending.exit_code(),
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            terminal::complain(&format!("tollgate: {error}"));
            error.exit_code()
        }
    }
}
