//! `--html`: the figures of a page, read back by a browser, are those of the report.

use std::fs;

use serde_json::Value;

use crate::replay::browser::{count, document_of, elements, rows, text_of};
use crate::replay::support::{SAMPLE, Scratch, text, tollgate};

/// Runs a command with `--html`, and gives the path of the page and the report.
fn page_and_report(scratch: &Scratch, args: &[&str]) -> (String, Value) {
    let page = scratch.file("report.html");
    let output = tollgate().args(args).args(["--html", &page, "--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    (page, serde_json::from_slice(&output.stdout).unwrap())
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The rows of the worst keys as the report has them.
fn worst(report: &Value) -> Vec<(String, u64, u64)> {
    let keys = report["worst_keys"].as_array().unwrap().iter();
    keys.map(|key| (key["key"].as_str().unwrap().to_owned(), number(&key["denied"]), number(&key["requests"])))
        .collect()
}

fn worst_shown(document: &str) -> Vec<(String, u64, u64)> {
    rows(document, "worst").into_iter().map(|row| (row[0].clone(), count(&row[1]), count(&row[2]))).collect()
}

/// The values that are shown where a chart is pointed at, one list for each series of each chart.
fn values_shown(document: &str) -> Vec<Vec<u64>> {
    let mut all = Vec::new();
    for (_, chart) in elements(document, "svg") {
        let mut series: Vec<Vec<u64>> = Vec::new();
        for place in chart.split("class=\"now\"").skip(1) {
            let texts = elements(place.split("</g>").next().unwrap(), "text");
            for (nth, (_, value)) in texts.iter().skip(1).enumerate() {
                series.resize(series.len().max(nth + 1), Vec::new());
                series[nth].push(count(&text_of(value)));
            }
        }
        all.extend(series);
    }
    all
}

#[test]
fn a_page_of_a_replay() {
    let scratch = Scratch::new("page-replay");
    let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sample/policy.toml");
    let cases: [&[&str]; 2] = [&["--limit", "20", "--per", "10s"], &["--policy", policy]];
    for args in cases {
        let (page, report) = page_and_report(&scratch, &[&["replay"], args, &["--top", "9999", SAMPLE]].concat());
        let Some(document) = document_of(&scratch, &page) else { return };
        assert_eq!(text_of(elements(&document, "h1")[0].1), report["replayed"].as_str().unwrap());
        let totals = rows(&document, "totals");
        for name in ["requests", "admitted", "denied"] {
            let row = totals.iter().find(|row| row[0] == name).unwrap();
            assert_eq!(count(&row[1]), number(&report[name]), "{name}");
        }
        let dimensions = report["dimensions"].as_array().unwrap();
        assert_eq!(worst_shown(&document), dimensions.iter().flat_map(worst).collect::<Vec<_>>());
        let keys: Vec<u64> = totals.iter().filter(|row| row[0].starts_with("keys")).map(|row| count(&row[1])).collect();
        let expected = dimensions.iter().flat_map(|one| [number(&one["keys"]), number(&one["keys_denied"])]);
        assert_eq!(keys, expected.collect::<Vec<_>>());
        let quotas = dimensions.iter().flat_map(|one| one["quotas"].as_array().unwrap());
        let by_quota: Vec<u64> = quotas.map(|quota| number(&quota["denied"])).collect();
        let shown: Vec<u64> = rows(&document, "denied-by").iter().map(|row| count(&row[2])).collect();
        assert!(shown == by_quota || by_quota.len() == 1 && shown.is_empty(), "{shown:?}");
        let sums: Vec<u64> = values_shown(&document).iter().map(|values| values.iter().sum()).collect();
        let (admitted, denied) = (number(&report["admitted"]), number(&report["denied"]));
        assert_eq!(sums, [admitted, denied, denied], "the values that show where a chart is pointed at");
    }
}

#[test]
fn a_page_of_a_suggestion() {
    let scratch = Scratch::new("page-suggest");
    let (page, report) = page_and_report(&scratch, &["suggest", SAMPLE]);
    let Some(document) = document_of(&scratch, &page) else { return };
    let limits = report["limits"].as_array().unwrap().iter().map(|limit| {
        (limit["quota"].as_str().unwrap().to_owned(), number(&limit["denied"]), number(&limit["keys_denied"]))
    });
    let shown = rows(&document, "limits").into_iter().map(|row| (row[0].clone(), count(&row[1]), count(&row[3])));
    assert_eq!(shown.collect::<Vec<_>>(), limits.collect::<Vec<_>>());
    let most =
        |window: &Value| ["p50", "p90", "p99", "p99.9", "max"].map(|name| number(&window["most_of_a_key"][name]));
    let expected: Vec<Vec<u64>> =
        report["windows"].as_array().unwrap().iter().map(|window| most(window).to_vec()).collect();
    let shown = rows(&document, "windows").into_iter().map(|row| row[1..].iter().map(|cell| count(cell)).collect());
    assert_eq!(shown.collect::<Vec<Vec<u64>>>(), expected);
    assert_eq!(text_of(elements(&document, "pre")[0].1), report["policy"]["toml"].as_str().unwrap());
    assert_eq!(worst_shown(&document), worst(&report["policy"]));
    // A limit of 1, and the least that denies nothing, of each window: first of requests, then of keys.
    let ends: Vec<(u64, u64)> =
        values_shown(&document).iter().map(|values| (values[0], *values.last().unwrap())).collect();
    assert_eq!(ends.len(), 8);
    assert!(ends.iter().all(|(first, _)| *first > 0), "{ends:?}");
}

#[test]
fn a_page_of_a_comparison() {
    let scratch = Scratch::new("page-compare");
    let options = ["compare", "--limit", "20", "--per", "10s", "--max-delay", "1s", SAMPLE];
    let (page, report) = page_and_report(&scratch, &options);
    let Some(document) = document_of(&scratch, &page) else { return };
    let compared = report["compared"].as_array().unwrap();
    let shown = rows(&document, "compared");
    assert_eq!(shown.len(), compared.len());
    let sums: Vec<u64> = values_shown(&document).iter().map(|values| values.iter().sum()).collect();
    for (at, (row, one)) in shown.iter().zip(compared).enumerate() {
        assert_eq!(row[0], one["name"].as_str().unwrap());
        let figures = [1, 3, 5].map(|column| count(&row[column]));
        let expected = [&one["denied"], &one["keys_denied"], &one["bursts"][0]["most"]].map(number);
        assert_eq!(figures, expected, "{row:?}");
        assert_eq!(count(row.last().unwrap()), number(&one["delayed"]));
        assert_eq!(sums[at], number(&one["denied"]));
    }
}

const HOSTILE: &str = "</td></table><script>document.title='taken'</script><img src=x onerror=alert(1)>&lt;\"'`";

/// Text of a log, of a policy and of the command line is shown as it is and does nothing, even
/// where a browser would let scripts run.
#[test]
fn a_hostile_log_is_shown_as_it_is() {
    let scratch = Scratch::new("page-hostile");
    let key = HOSTILE.replace('"', "\"\"");
    let log = scratch.with("<b>log.csv", format!("time,client\n1,\"{key}\"\n1,\"{key}\"\n9,b\n9,b\n"));
    let name = HOSTILE.replace('"', "\\\"");
    let policy =
        format!("[[dimension]]\nname = \"{name}\"\nkey = [\"client\"]\nquota = [{{ limit = 1, per = \"1s\" }}]\n");
    let policy = scratch.with("<i>policy.toml", policy);
    let plot = scratch.file("plot.svg");
    let commands: [&[&str]; 3] = [
        &["replay", "--policy", &policy, "--plot", &plot, &log],
        &["suggest", "--window", "1s", "--deny", "50%", &log],
        &["compare", "--policy", &policy, "--policy", &policy, "--plot", &plot, &log],
    ];
    for args in commands {
        let (page, _) = page_and_report(&scratch, args);
        let html = fs::read_to_string(&page).unwrap();
        let tags = |html: &str| ["<script", "<img", "<b>", "<i>"].iter().any(|tag| html.contains(tag));
        assert!(!tags(&html), "{args:?}");
        assert!(args[0] == "suggest" || !tags(&fs::read_to_string(&plot).unwrap()), "{args:?}");
        let policy = html.find("<meta http-equiv=\"Content-Security-Policy\"").expect("a policy");
        let end = policy + html[policy..].find('>').unwrap() + 1;
        let without_policy = scratch.with("bare.html", format!("{}{}", &html[..policy], &html[end..]));
        for page in [&page, &without_policy] {
            let Some(document) = document_of(&scratch, page) else { return };
            assert!(!tags(&document) && !document.contains("<title>taken"), "{args:?}");
            if args[0] != "compare" {
                assert!(worst_shown(&document).iter().any(|(key, ..)| key == HOSTILE), "{args:?} {document}");
            }
        }
    }
}

#[test]
fn a_long_key_is_cut_short() {
    let scratch = Scratch::new("page-long");
    let key = "k".repeat(300_000);
    let log = scratch.with("log.csv", format!("time,client\n1,{key}\n1,{key}\n9,b\n"));
    let (page, _) = page_and_report(&scratch, &["replay", "--limit", "1", "--per", "1s", &log]);
    assert!(fs::read_to_string(page).unwrap().len() < 150_000);
}

#[test]
fn a_page_loads_nothing() {
    let scratch = Scratch::new("page-alone");
    for args in [&["replay", "--limit", "20", "--per", "10s", SAMPLE][..], &["suggest", SAMPLE]] {
        let (page, _) = page_and_report(&scratch, args);
        let html = fs::read_to_string(page).unwrap();
        for word in ["http:", "https:", "src=", "url(", "<link", "<script", "@import"] {
            assert!(!html.contains(word), "{word}");
        }
        assert!(html.contains("default-src 'none'") && html.contains("prefers-color-scheme:dark"));
        assert!(html.len() < 300_000, "{} bytes", html.len());
    }
}

#[test]
fn keys_stay_out_of_a_page_with_top_0() {
    let scratch = Scratch::new("page-top");
    let (page, _) = page_and_report(&scratch, &["replay", "--limit", "20", "--per", "10s", "--top", "0", SAMPLE]);
    assert!(!fs::read_to_string(page).unwrap().contains("203.0.113.66"));
    let (page, _) = page_and_report(&scratch, &["suggest", "--deny", "1%", "--top", "0", SAMPLE]);
    assert!(!fs::read_to_string(page).unwrap().contains("198.51.100.23"));
}

#[test]
fn a_page_is_html_and_spares_the_logs() {
    let scratch = Scratch::new("page-name");
    let log = scratch.with("log.html", "time,client\n1,a\n2,a\n");
    for (html, reason) in
        [(scratch.file("x.pdf"), "--html"), (log.clone(), "would overwrite"), ("-".to_owned(), "ends in .html")]
    {
        for command in
            [&["replay", "--limit", "1", "--per", "1s"][..], &["suggest"], &["compare", "--limit", "1", "--per", "1s"]]
        {
            let output = tollgate().args(command).args(["--html", &html, &log]).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{command:?} {html}");
            assert!(text(&output.stderr).contains(reason), "{}", text(&output.stderr));
        }
    }
    let output = tollgate().args(["suggest", "--html", "/nowhere/x.html", &log]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/nowhere/x.html could not be written"), "{}", text(&output.stderr));
}
