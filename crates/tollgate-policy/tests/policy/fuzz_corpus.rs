//! Texts as policy files: a corpus of good and bad ones, and those with random damage, on every run
//! of the tests.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tollgate_kit::fuzz::policy::{Read, read};

fn seeds() -> Vec<(PathBuf, Vec<u8>)> {
    let corpus: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "fuzz", "corpus", "policy"].iter().collect();
    let files = fs::read_dir(&corpus).expect("the corpus is part of the repository");
    let mut seeds: Vec<(PathBuf, Vec<u8>)> = files
        .map(|seed| seed.expect("a readable directory").path())
        .map(|path| (path.clone(), fs::read(path).expect("a readable seed")))
        .collect();
    seeds.sort();
    seeds
}

#[test]
fn every_seed_of_the_corpus() {
    let (mut policies, mut refused) = (0, 0);
    for (path, bytes) in seeds() {
        match read(&bytes) {
            Ok(Read::Policy) => policies += 1,
            Ok(Read::Refused) => refused += 1,
            Ok(Read::NoText) => panic!("{} says nothing", path.display()),
            Err(difference) => panic!("{}: {difference}", path.display()),
        }
    }
    assert!(policies >= 8 && refused >= 8, "{policies} policies and {refused} that are refused: is that the corpus?");
}

/// Damage to the text of a seed.
#[derive(Debug, Clone)]
enum Damage {
    Put(Index, String),
    Cut(Index, usize),
    Copy(Index, Index, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let words = prop::sample::select(vec![
        "=",
        "[",
        "]",
        "[[dimension]]\n",
        "[[dimension.tier]]\n",
        "[[rule]]\n",
        "match = { path = \"/\" }\n",
        "unlimited = true\n",
        "[[dimension.quota]]\n",
        "\"",
        "\n",
        "0",
        "-1",
        "9",
        "4294967295",
        "0s",
        "1ns",
        "36y",
        "\u{e9}",
        "#",
        "{",
        "}",
        ",",
        "limit",
        "phase = \"1s\"\n",
        "month",
        "zone = \"UTC\"\n",
        "algorithm = \"concurrency\"\n",
        "max_hold = \"1s\"\n",
        "start = 0\n",
        "\\",
        "\u{1}",
        "'''",
        ".",
        "e9",
    ]);
    prop_oneof![
        (any::<Index>(), words).prop_map(|(at, word)| Damage::Put(at, word.to_owned())),
        (any::<Index>(), 1_usize..12).prop_map(|(at, length)| Damage::Cut(at, length)),
        (any::<Index>(), any::<Index>(), 1_usize..80).prop_map(|(from, to, length)| Damage::Copy(from, to, length)),
    ]
}

fn damaged(text: &[u8], damage: &[Damage]) -> Vec<u8> {
    let mut text = text.to_vec();
    for damage in damage {
        let place = |index: &Index| index.index(text.len() + 1);
        match damage {
            Damage::Put(at, word) => {
                let at = place(at);
                text.splice(at..at, word.bytes()).for_each(drop);
            }
            Damage::Cut(at, length) => {
                let at = place(at);
                let end = (at + length).min(text.len());
                text.drain(at..end).for_each(drop);
            }
            Damage::Copy(from, to, length) => {
                let (from, to) = (place(from), place(to));
                let part = text[from..(from + length).min(text.len())].to_vec();
                text.splice(to..to, part).for_each(drop);
            }
        }
    }
    text
}

/// The same damage in each run, and the least of it that fails if any does.
#[test]
fn damaged_seeds() {
    let seeds = seeds();
    let config = Config { cases: 4000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let result = runner.run(&(any::<Index>(), prop::collection::vec(damage(), 1..6)), |(seed, damage)| {
        let text = damaged(&seed.get(&seeds).1, &damage);
        let read = read(&text);
        read.map(drop).map_err(|difference| TestCaseError::fail(format!("{difference}\n{}", text.escape_ascii())))
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}
