//! `--actual-cost-column`: requests are decided by what they ask for, and charged what they have
//! cost.

use std::collections::HashMap;
use std::fs;

use serde_json::{Value, json};
use tollgate_kit::key::{Key, Quotas};
use tollgate_kit::oracle::meter::Meter;

use crate::replay::browser::{count, document_of, rows};
use crate::replay::support::{Numbers, SAMPLE, Scratch, replay, text, tollgate, total};

const LIMIT: u32 = 8;
const WINDOW: u64 = 1_000;

/// What there is to each request: the time, the key, what it asks for, and what it has cost.
type Request = (u64, String, u32, u32);

/// Requests so dense that permits expire at the very nanosecond of one, and pauses that are longer
/// than it takes to have all permits back, and shorter than it takes to pay some debts.
fn requests(seed: u64) -> Vec<Request> {
    let mut numbers = Numbers::from(seed);
    let (mut time, mut all) = (0, Vec::new());
    for _ in 0..800 {
        time += if numbers.below(40) == 0 { numbers.below(5) * WINDOW } else { numbers.below(5) * 50 };
        let cost = u32::try_from(numbers.below(u64::from(LIMIT) + 2)).unwrap();
        let most = if numbers.below(30) == 0 { 10 * LIMIT } else { LIMIT };
        let actual = match numbers.below(3) {
            0 => cost,
            _ => u32::try_from(numbers.below(u64::from(most))).unwrap(),
        };
        all.push((time, format!("k{}", numbers.below(3)), cost, actual));
    }
    all
}

fn as_csv(requests: &[Request]) -> String {
    let line = |(time, key, cost, actual): &Request| format!("{actual},{cost},{key},{time}\n");
    "used,asked,key,time\n".to_owned() + &requests.iter().map(line).collect::<String>()
}

/// Whether each request is admitted and its wait, and the permits: as estimated, in fact, and those
/// that were not there, and the requests by which they were not.
fn naive(quotas: &Quotas, requests: &[Request]) -> (Vec<(bool, Option<u64>)>, [u64; 4]) {
    let (mut keys, mut costs) = (HashMap::<&str, Key>::new(), [0; 4]);
    let mut decided = Vec::new();
    for (time, key, cost, actual) in requests {
        let key = keys.entry(key).or_insert_with(|| quotas.key(*time));
        if *cost > quotas.most() {
            decided.push((false, None));
            continue;
        }
        // What costs nothing is admitted in debt, too.
        let wait = if *cost == 0 { 0 } else { key.wait(*time, *cost) };
        decided.push((wait == 0, Some(wait)));
        if wait > 0 {
            continue;
        }
        let mut estimated = key.clone();
        estimated.grant(*time, *cost);
        let left = (1..=quotas.most()).take_while(|more| estimated.admits(*time, *more)).count();
        let debt = actual.saturating_sub(*cost).saturating_sub(u32::try_from(left).unwrap());
        // At the same time, so it is as if that had been charged at once.
        if *actual > 0 {
            key.grant(*time, *actual);
        }
        for (sum, more) in costs.iter_mut().zip([*cost, *actual, debt, u32::from(debt > 0)]) {
            *sum += u64::from(more);
        }
    }
    (decided, costs)
}

const LOG: [&str; 4] = ["--limit", "8", "--per", "1000ns"];
const BUCKET: [&str; 8] = ["--algorithm", "token-bucket", "--capacity", "8", "--refill", "8", "--per", "1000ns"];

/// Each algorithm with a naive program of it, and its options.
fn algorithms() -> Vec<(Quotas, Vec<&'static str>)> {
    let meter = Quotas::Meter;
    vec![
        (Quotas::log(LIMIT, WINDOW), LOG.to_vec()),
        (meter(Meter::TokenBucket { capacity: 8, refill: 8, per: WINDOW, start: 8 }), BUCKET.to_vec()),
        (
            meter(Meter::LeakyBucket { capacity: 8, leak: 3, per: 700 }),
            vec!["--algorithm", "leaky-bucket", "--capacity", "8", "--leak", "3", "--per", "700ns"],
        ),
        (
            meter(Meter::FixedWindow { limit: 8, window: WINDOW, phase: None }),
            vec!["--algorithm", "fixed-window", "--limit", "8", "--per", "1000ns"],
        ),
        (
            meter(Meter::SlidingCounter { limit: 8, window: WINDOW, phase: 0 }),
            vec!["--algorithm", "sliding-counter", "--limit", "8", "--per", "1000ns"],
        ),
        (
            meter(Meter::QuantisedLog { limit: 8, window: WINDOW, resolution: 100 }),
            vec!["--algorithm", "quantised-log", "--limit", "8", "--per", "1000ns", "--resolution", "100ns"],
        ),
        (
            meter(Meter::LeakyQueue { leak: 1, per: 100, max_delay: 700 }),
            vec!["--algorithm", "leaky-queue", "--leak", "1", "--per", "100ns", "--max-delay", "700ns"],
        ),
    ]
}

/// Whether each request is admitted, and its wait, and the report.
fn replayed(scratch: &Scratch, options: &[&str], log: &str) -> (Vec<(bool, Option<u64>)>, Value) {
    let file = scratch.file("decisions.csv");
    let output = replay(&[options, &["--format", "json", "--decisions", &file, log]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut reader = csv::Reader::from_path(&file).unwrap();
    let rows = reader.records().map(|row| row.unwrap());
    let decided = rows.map(|row| (&row[2] == "1", (!row[3].is_empty()).then(|| row[3].parse().unwrap())));
    (decided.collect(), serde_json::from_slice(&output.stdout).unwrap())
}

const COLUMNS: [&str; 8] =
    ["--key", "key", "--time-unit", "ns", "--cost-column", "asked", "--actual-cost-column", "used"];

#[test]
fn requests_are_decided_by_estimates_and_charged_what_they_have_cost() {
    let scratch = Scratch::new("actual-costs");
    let mut in_debt = 0;
    for (seed, (quotas, options)) in (0..4).flat_map(|seed| algorithms().into_iter().map(move |of| (seed, of))) {
        let requests = requests(seed);
        let log = scratch.with("log.csv", as_csv(&requests));
        let (decided, report) = replayed(&scratch, &[options.as_slice(), &COLUMNS].concat(), &log);
        let (expected, [estimated, actual, debt, requests_in_debt]) = naive(&quotas, &requests);
        let first = decided.iter().zip(&expected).position(|(one, other)| one != other);
        let shown = first.map(|at| (&requests[at], decided[at], expected[at]));
        assert_eq!((shown, decided.len()), (None, expected.len()), "{options:?}, seed {seed}");
        let costs = &report["costs"];
        assert_eq!((&costs["estimated"], &costs["actual"]), (&estimated.into(), &actual.into()), "{options:?}");
        // A queue admits any cost whose first place leaves in time: what is left of it is another number.
        if options[1] != "leaky-queue" {
            assert_eq!((&costs["debt"], &costs["requests_in_debt"]), (&debt.into(), &requests_in_debt.into()));
            in_debt += requests_in_debt;
        }
        let denied = expected.iter().filter(|(is_admitted, wait)| !is_admitted && wait.is_some()).count();
        assert!(denied > 100 && denied < 700, "{options:?}: {denied}");
    }
    assert!(in_debt > 1000, "{in_debt}");
}

/// The estimates alone decide otherwise, and so do the actual costs alone.
#[test]
fn either_column_alone_is_another_log() {
    let scratch = Scratch::new("one-column");
    let log = scratch.with("log.csv", as_csv(&requests(1)));
    let by = |columns: &[&str]| replayed(&scratch, &[&LOG, &COLUMNS[..4], columns].concat(), &log);
    let (both, _) = by(&COLUMNS[4..]);
    let (estimated, report) = by(&["--cost-column", "asked"]);
    assert_eq!(report["costs"], Value::Null);
    assert_ne!(both, estimated);
    assert_ne!(both, by(&["--cost-column", "used"]).0);
    // Without an estimate each asks for one permit.
    let ones: Vec<Request> = requests(1).into_iter().map(|(time, key, _, actual)| (time, key, 1, actual)).collect();
    let (expected, [estimated, actual, ..]) = naive(&Quotas::log(LIMIT, WINDOW), &ones);
    let (decided, report) = by(&["--actual-cost-column", "used"]);
    assert_eq!(decided, expected);
    assert_eq!((&report["costs"]["estimated"], &report["costs"]["actual"]), (&estimated.into(), &actual.into()));
}

#[test]
fn estimates_that_were_right_change_nothing() {
    let scratch = Scratch::new("right-estimates");
    let log = scratch.with("log.csv", as_csv(&requests(2)));
    for (_, options) in algorithms() {
        let by = |columns: &[&str]| replayed(&scratch, &[options.as_slice(), &COLUMNS[..6], columns].concat(), &log);
        let (plain, mut report) = by(&[]);
        let (decided, mut of_both) = by(&["--actual-cost-column", "asked"]);
        assert_eq!(decided, plain, "{options:?}");
        let costs = of_both["costs"].take();
        assert_eq!((&costs["estimated"], &costs["debt"]), (&costs["actual"], &0.into()));
        assert!(costs["actual"].as_u64() > Some(100), "{options:?} {costs}");
        report["costs"].take();
        assert_eq!(report, of_both, "{options:?}");
    }
}

/// The sizes of answers, which a server knows afterwards.
#[test]
fn the_sizes_of_the_sample_are_charged_afterwards() {
    let lines = fs::read_to_string(SAMPLE).unwrap();
    let request = |line: &str| -> Request {
        let seconds = crate::replay::decisions::seconds_of(line.split(['[', ']']).nth(1).unwrap());
        let bytes = line.split('"').nth(2).unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
        (seconds * 1_000_000_000, line.split(' ').next().unwrap().to_owned(), 1, bytes)
    };
    let mut requests: Vec<Request> = lines.lines().map(request).collect();
    requests.sort_by_key(|request| request.0);
    let quotas =
        Quotas::Meter(Meter::TokenBucket { capacity: 50_000, refill: 50_000, per: 60_000_000_000, start: 50_000 });
    let (expected, [estimated, actual, debt, requests_in_debt]) = naive(&quotas, &requests);
    let bucket = ["--algorithm", "token-bucket", "--capacity", "50000", "--refill", "50000", "--per", "1m"];
    let scratch = Scratch::new("sample-sizes");
    let options = [bucket.as_slice(), &["--actual-cost-column", "bytes"]].concat();
    let (decided, report) = replayed(&scratch, &options, SAMPLE);
    assert!(decided == expected, "{report}");
    let costs = json!({
        "estimated": estimated, "actual": actual, "debt": debt, "requests_in_debt": requests_in_debt,
    });
    assert_eq!(report["costs"], costs);
    assert!(requests_in_debt > 10 && estimated > 1000, "{costs}");
    // The same figures for people, and on a page.
    let page = scratch.file("report.html");
    let output = replay(&[options.as_slice(), &["--html", &page, SAMPLE]].concat());
    let named = [("estimated", estimated), ("actual", actual), ("debt", debt)];
    for (name, permits) in named {
        assert_eq!(total(&output, name), permits, "{name}");
    }
    let words = format!("by {requests_in_debt} requests");
    assert!(text(&output.stdout).contains(&words), "{}", text(&output.stdout));
    let Some(document) = document_of(&scratch, &page) else { return };
    let totals = rows(&document, "totals");
    for (name, permits) in named {
        let row = totals.iter().find(|row| row[0] == name).unwrap();
        assert_eq!(count(&row[1]), permits, "{name}");
    }
}

#[test]
fn a_policy_settles_in_all_dimensions_and_tiers() {
    let scratch = Scratch::new("actual-policy");
    let all = requests(3);
    let log = scratch.with("log.csv", as_csv(&all));
    let bucket = "{ algorithm = \"token-bucket\", capacity = 8, refill = 8, per = \"1000ns\" }";
    let dimension =
        |name: &str, quota: &str| format!("[[dimension]]\nname = \"{name}\"\nkey = [\"key\"]\nquota = [{quota}]\n");
    let tier =
        "[[dimension.tier]]\nname = \"few\"\nmatch = { key = \"k0\" }\nquota = [{ limit = 8, per = \"1000ns\" }]\n";
    let loose = dimension("loose", "{ limit = 1000000, per = \"1000ns\" }");
    let by_policy = |policy: &str| {
        let policy = scratch.with("policy.toml", policy);
        replayed(&scratch, &[&["--policy", &policy], &COLUMNS[2..]].concat(), &log)
    };
    let by_options = replayed(&scratch, &[BUCKET.as_slice(), &COLUMNS].concat(), &log);
    for policy in [dimension("bucket", bucket), dimension("bucket", bucket) + &loose] {
        let (decided, report) = by_policy(&policy);
        assert!(decided == by_options.0, "{policy}");
        assert_eq!(report["costs"], by_options.1["costs"]);
    }
    // Each key has what its tier has.
    let (decided, _) = by_policy(&(dimension("bucket", bucket) + tier));
    let with_log = replayed(&scratch, &[LOG.as_slice(), &COLUMNS].concat(), &log).0;
    for (at, (_, key, ..)) in all.iter().enumerate() {
        assert_eq!(decided[at], if key == "k0" { with_log[at] } else { by_options.0[at] }, "{at}");
    }
}

#[test]
fn compare_settles_and_tells_costs() {
    let scratch = Scratch::new("actual-compare");
    let all = requests(0);
    let log = scratch.with("log.csv", as_csv(&all));
    let page = scratch.file("compare.html");
    let compare = |more: &[&str]| {
        let options = ["compare", "--limit", "8", "--per", "1000ns", "--window", "1000ns"];
        let algorithms = ["--algorithm", "sliding-window-log,token-bucket", "--html", &page];
        let output = tollgate().args(options).args(algorithms).args(COLUMNS).args(more).arg(&log).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let report: Value = serde_json::from_str(&compare(&["--format", "json"])).unwrap();
    for (at, options) in [LOG.as_slice(), &BUCKET].into_iter().enumerate() {
        let (decided, alone) = replayed(&scratch, &[options, &COLUMNS].concat(), &log);
        let one = &report["compared"][at];
        assert_eq!((&one["costs"], &one["denied"]), (&alone["costs"], &alone["denied"]));
        let admitted: Vec<&Request> = all.iter().zip(&decided).filter(|(_, (is, _))| *is).map(|(of, _)| of).collect();
        let used_until = |end: &Request| -> u64 {
            let in_window = |of: &&&Request| of.1 == end.1 && of.0 <= end.0 && of.0 + WINDOW > end.0;
            admitted.iter().filter(in_window).map(|of| u64::from(of.3)).sum()
        };
        let most = admitted.iter().map(|end| used_until(end)).max().unwrap();
        assert_eq!(one["bursts"][0]["most"], most, "the most permits that were used in a window");
        assert!(most > u64::from(LIMIT), "some of them are debt");
        let number = |name: &str| one["costs"][name].as_u64().unwrap();
        let (estimated, actual, debt) = (number("estimated"), number("actual"), number("debt"));
        let thousands = |count: u64| match count / 1000 {
            0 => count.to_string(),
            thousands => format!("{thousands},{:03}", count % 1000),
        };
        let [estimated, actual, debt] = [estimated, actual, debt].map(thousands);
        let words = format!("  {estimated} permits estimated, {actual} in fact, {debt} of them debt\n");
        assert!(compare(&[]).contains(&words), "{words} {}", compare(&[]));
    }
    let html = fs::read_to_string(&page).unwrap();
    assert!(["permits estimated", "in fact", "debt"].iter().all(|column| html.contains(column)));
}

#[test]
fn costs_that_are_none_are_told_with_their_line_and_column() {
    let scratch = Scratch::new("bad-actual-costs");
    let by = |log: &str| replay(&[LOG.as_slice(), &COLUMNS, &[log]].concat());
    for bad in ["x", "-5", "1.5", ""] {
        let log = scratch.with("log.csv", format!("used,asked,key,time\n3,1,a,1\n{bad},1,a,2\n3,1,a,3\n"));
        let output = by(&log);
        let told = format!(
            "{log}:3: {bad:?} is not a cost (a whole number from 0): look whether --actual-cost-column names the right \
             column\n"
        );
        assert!(text(&output.stderr).starts_with(&told), "{}", text(&output.stderr));
        assert_eq!((total(&output, "requests"), total(&output, "actual")), (2, 6));
    }
    let log = scratch.with("log.csv", "asked,key,time\n1,a,1\n");
    let output = by(&log);
    let told = "has no column for the actual cost called \"used\": its columns are \"asked\", \"key\", \"time\"; name \
                one of them with --actual-cost-column";
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains(told), "{}", text(&output.stderr));
    // Each line of JSON has its own fields.
    let line = |used: &str| format!("{{\"time\":1,\"key\":\"a\",\"asked\":1{used}}}\n");
    let log = scratch.with("log.jsonl", line(",\"used\":3") + &line(""));
    let output = by(&log);
    let told = format!(
        "{log}:2: has no actual cost called \"used\": the fields are \"asked\", \"key\", \"time\"; name one of them with \
         --actual-cost-column\n"
    );
    assert!(text(&output.stderr).starts_with(&told), "{}", text(&output.stderr));
    assert_eq!((total(&output, "requests"), total(&output, "actual")), (1, 3));
}

#[test]
fn a_policy_that_settles_nothing_is_refused() {
    let scratch = Scratch::new("unsettled");
    let log = scratch.with("log.csv", as_csv(&requests(0)));
    let of = |quota: &str| format!("[[dimension]]\nname = \"key\"\nkey = [\"key\"]\nquota = [{quota}]\n");
    let store = "[store]\nurl = \"redis://127.0.0.1:1\"\nsecret = { env = \"NONE\" }\n\n".to_owned();
    let on_store = scratch.with("store.toml", store + &of("{ limit = 8, per = \"1000ns\" }"));
    let queue = "{ algorithm = \"leaky-queue\", leak = 1, per = \"100ns\", max_delay = \"700ns\" }";
    let queue = scratch.with("queue.toml", of(queue));
    let cases = [
        (&on_store, "has a `[store]`, and a store settles no charges: replay it with --in-process"),
        (&queue, "has a leaky queue, and a policy settles no charges"),
    ];
    for (policy, reason) in cases {
        for command in ["replay", "compare"] {
            let output = tollgate().args([command, "--policy", policy]).args(&COLUMNS[2..]).arg(&log).output().unwrap();
            let told = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{told}");
            assert!(told.starts_with(&format!("tollgate: {policy}: the policy {reason}")), "{told}");
            assert!(told.ends_with("or leave out --actual-cost-column\n") && output.stdout.is_empty(), "{told}");
        }
    }
    let in_process = replay(&[&["--in-process", "--policy", &on_store], &COLUMNS[2..], &[&log]].concat());
    assert!(in_process.status.success(), "{}", text(&in_process.stderr));
    let alone = replay(&[LOG.as_slice(), &COLUMNS, &[&log]].concat());
    assert_eq!(total(&in_process, "actual"), total(&alone, "actual"));
}
