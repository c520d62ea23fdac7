//! The `tollgate` command-line program: what would a rate limit have done to the traffic in a log?

mod args;
mod batch;
mod chart;
mod check;
mod clients;
mod compare;
mod decide;
mod decisions;
mod errors;
mod events;
mod fields;
mod filter;
mod formats;
mod input;
mod key;
mod log;
mod log_clock;
mod markup;
mod matching;
mod number;
#[cfg(feature = "redis")]
mod on_store;
mod outcome;
mod page;
mod plan;
mod plot;
mod progress;
mod reader;
mod reading;
mod replay;
mod report;
mod sample;
#[cfg(feature = "serve")]
mod serve;
mod suggest;
mod terminal;
mod text;
mod time;
mod timeline;
mod times;
mod too_big;
mod words;

use std::process::ExitCode;

use clap::Parser;

use reading::Ending;

fn main() -> ExitCode {
    let result = match args::Cli::parse().command {
        args::Command::Replay(args) => replay::replay(&args).map(Ending::exit_code),
        args::Command::Suggest(args) => suggest::suggest(&args).map(Ending::exit_code),
        args::Command::Compare(args) => compare::compare(&args).map(Ending::exit_code),
        args::Command::Check(args) => check::check(&args),
        #[cfg(feature = "serve")]
        args::Command::Serve(args) => serve::serve(&args),
        #[cfg(not(feature = "serve"))]
        args::Command::Serve { .. } => Err(errors::RunError::no_serve()),
        args::Command::Sample(args) => sample::print(&args).map(|()| ExitCode::SUCCESS),
    };
    match result {
        Ok(code) => code,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            terminal::complain(&format!("tollgate: {error}"));
            error.exit_code()
        }
    }
}
