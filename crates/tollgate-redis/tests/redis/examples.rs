//! The example prints what it promises.

use std::process::Command;

use tollgate_kit::programs::{example, skipped};
use tollgate_kit::redis::{Server, ask};

/// By a server of its own, or by one whose address is given.
#[test]
fn of_any_split_over_two_processes_exactly_n_are_admitted() {
    let Some(server) = Server::start(&[]) else { return };
    let Some(program) = example("two_processes") else {
        return skipped("two_processes was not built; run `cargo test -p tollgate-redis`");
    };
    for arguments in [vec![], vec![server.address()]] {
        let output = Command::new(&program).args(arguments).output().expect("the example runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout).expect("a text");
        let counts: Vec<&str> = said.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
        let expected = [
            "even            | 100 of 400 admitted",
            "uneven          | 100 of 400 admitted",
            "one alone       | 100 of 400 admitted",
            "below the limit |  90 of  90 admitted",
        ];
        assert_eq!(counts, expected, "{said}");
        // How many each process has is by chance.
        let readme = include_str!("../../README.md");
        assert!(expected.iter().all(|line| readme.contains(line)), "the README shows what the example prints");
    }
    let keys: Vec<String> = ask(&mut server.connect(), &["KEYS", "*"]);
    assert_eq!(keys.len(), 4, "the second time by this server alone");
}
