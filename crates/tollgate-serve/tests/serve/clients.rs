//! The clients of the guide in other languages, and the guide itself.

use std::process::{Command, Output};
use std::time::Duration;

use crate::place::by_both;
use crate::processes::guided;
use tollgate_kit::programs::is_there;

const README: &str = include_str!("../../README.md");

fn text(output: &Output) -> String {
    let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{out}{errors}");
    out.into_owned()
}

/// As the guide shows it, in process and on a store.
#[test]
fn curl_is_admitted_and_told_to_wait() {
    if !is_there("curl", "--version") {
        return;
    }
    by_both(|place| {
        let (tollgate, clock) = guided(place);
        let run = |cost: u32| {
            let body = format!(r#"{{"keys": {{"client": "192.0.2.7"}}, "cost": {cost}}}"#);
            let mut curl = Command::new("curl");
            curl.args(["-s", "-i", "--max-time", "60", "--json", &body, &tollgate.url("/acquire")]);
            text(&curl.output().unwrap())
        };
        let admitted = run(1).replace('\r', "");
        let shown = README.split("/acquire\n").nth(1).unwrap().split("\n```").next().unwrap();
        for line in shown.lines() {
            assert!(admitted.lines().any(|other| other == line), "{line:?} is not in {admitted}");
        }
        assert!(run(99).starts_with("HTTP/1.1 200 "));
        clock.advance(Duration::from_millis(18_800));
        let denied = run(1).replace('\r', "");
        assert!(denied.starts_with("HTTP/1.1 429 ") && denied.contains("\nretry-after: 42\n"), "{denied}");
        assert!(denied.contains(r#""violated-policies":["address"]"#), "{denied}");
    });
}

#[test]
fn the_client_in_python_is_admitted_and_told_to_wait() {
    if !is_there("python3", "--version") {
        return;
    }
    by_both(|place| {
        let (tollgate, clock) = guided(place);
        let folder = tempfile::tempdir().unwrap();
        let client = include_str!("../../guide/client.py").replace("timeout=1)", "timeout=60)");
        std::fs::write(folder.path().join("client.py"), client).unwrap();
        let run = |call: &str| {
            let main = format!("import sys; from client import acquire; url = sys.argv[1]; print({call})");
            let mut python = Command::new("python3");
            python.args(["-B", "-c", &main, &tollgate.url("/acquire")]).env("PYTHONPATH", folder.path());
            python.output().unwrap()
        };
        assert_eq!(text(&run("acquire({'client': '192.0.2.7'}, 100, url)")), "0\n");
        clock.advance(Duration::from_millis(18_800));
        assert_eq!(text(&run("acquire({'client': '192.0.2.7'}, url=url)")), "42\n");
        assert_eq!(text(&run("acquire({'client': '192.0.2.8'}, url=url)")), "0\n");
        // A mistake of the program is an error there.
        let wrong = run("acquire({'user': 'alice'}, url=url)");
        assert!(!wrong.status.success() && String::from_utf8_lossy(&wrong.stderr).contains("HTTP Error 400"));
    });
}

#[test]
fn the_client_in_go_is_admitted_and_told_to_wait() {
    if !is_there("go", "version") {
        return;
    }
    by_both(|place| {
        let (tollgate, _clock) = guided(place);
        let folder = tempfile::tempdir().unwrap();
        let main = r#"
            package main

            import "fmt"

            func main() {
                for _, cost := range []int{100, 1, 101} {
                    wait, err := Acquire("URL", map[string]string{"client": "192.0.2.7"}, cost)
                    fmt.Println(wait, err)
                }
            }
        "#;
        let client = include_str!("../../guide/client.go").replace("Timeout: time.Second", "Timeout: time.Minute");
        std::fs::write(folder.path().join("client.go"), client).unwrap();
        std::fs::write(folder.path().join("main.go"), main.replace("URL", &tollgate.url("/acquire"))).unwrap();
        let mut go = Command::new("go");
        go.args(["run", "client.go", "main.go"]).current_dir(&folder);
        go.env("GOCACHE", std::env::temp_dir().join("tollgate-serve-go")).env("GOFLAGS", "").env("GO111MODULE", "off");
        let output = go.output().unwrap();
        assert_eq!(text(&output), "0s <nil>\n1m0s <nil>\n0s 422 Unprocessable Entity\n");
    });
}

/// What the guide shows is what the other tests start.
#[test]
fn the_guide_shows_its_files_as_they_are() {
    let files = [
        include_str!("../../guide/nginx.conf"),
        include_str!("../../guide/client.py"),
        include_str!("../../guide/client.go"),
        include_str!("../../guide/policy.toml"),
        include_str!("../../guide/tiers.toml"),
    ];
    for file in files {
        assert!(README.contains(file), "the guide lacks this as it is:\n{file}");
    }
    let configurations = [
        include_str!("../../guide/envoy-ext-authz-grpc.yaml"),
        include_str!("../../guide/envoy-ext-authz-http.yaml"),
        include_str!("../../guide/envoy-ratelimit.yaml"),
    ];
    let shown: Vec<&str> = README.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(shown.len() >= 4, "{}", shown.len());
    for part in shown {
        let indented = |indent: usize| part.lines().map(|line| format!("{}{line}\n", " ".repeat(indent))).collect();
        let is_part = |whole: &&str| (0..20).any(|indent| whole.contains(&indented(indent) as &String));
        assert!(configurations.iter().any(is_part), "no file has this:\n{part}");
    }
}
