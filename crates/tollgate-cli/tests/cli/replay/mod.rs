//! Runs `tollgate replay` as its users do, and checks what it says against others than itself.

mod actual_costs;
mod beside;
mod browser;
mod check;
mod clients;
mod compare;
mod corpus;
mod decisions;
mod json_logs;
mod logs;
mod messages;
mod naive;
mod options;
mod output;
mod pages;
mod pages_drawn;
mod penalty;
mod policy;
mod rules;
mod selection;
mod suggest;
mod support;
mod too_big;
mod trouble;

/// The plain build names the command of the other.
#[cfg(not(feature = "serve"))]
#[test]
fn serve_on_the_plain_build_tells_how_to_install_it() {
    for options in [&["serve"][..], &["serve", "--address", "client", "policy.toml"], &["serve", "--help"]] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_tollgate")).args(options).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("cargo install tollgate-cli --features serve`"), "{text}");
    }
}
