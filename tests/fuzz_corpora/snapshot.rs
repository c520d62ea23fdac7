//! Bytes as snapshots: a corpus of good and bad ones, and random damage to good ones, on every run
//! of the tests.

use std::fs;
use std::path::PathBuf;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tollgate_kit::fuzz::snapshot::{Read, good, read};

fn corpus() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "fuzz", "corpus", "snapshot"].iter().collect()
}

#[test]
fn every_seed_of_the_corpus() {
    let (mut refused, mut unfit, mut restored) = (0, 0, 0);
    for seed in fs::read_dir(corpus()).expect("the corpus is part of the repository") {
        let path = seed.expect("a readable directory").path();
        match read(&fs::read(&path).expect("a readable seed")) {
            Ok(Read::Refused | Read::Nothing) => refused += 1,
            Ok(Read::Snapshot) => unfit += 1,
            Ok(Read::Restored) => restored += 1,
            Err(difference) => panic!("{}: {difference}", path.display()),
        }
    }
    let all = [refused, unfit, restored];
    assert!(
        refused >= 4 && unfit >= 2 && restored >= 9,
        "{all:?} are refused, fit no limiter, and are restored: is that the corpus?"
    );
}

#[test]
fn good_ones_are_restored() {
    for which in 0..9 {
        // As it is, its contents, and no damage to it.
        let good = good(which.into());
        let inputs = [[&[0], good.as_slice()].concat(), [&[5], &good[36..]].concat(), vec![which << 2 | 2]];
        for input in inputs {
            assert_eq!(read(&input), Ok(Read::Restored), "{which}, {}", input[0]);
        }
    }
}

/// The same bytes in each run, and the fewest of them that fail if any do.
#[test]
fn random_damage() {
    let config = Config { cases: 4000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let result = runner.run(&(0_u8..9, 0_u8..4, vec(any::<u8>(), 0..30)), |(which, what, told)| {
        let input = [&[which << 2 | what], told.as_slice()].concat();
        read(&input).map(drop).map_err(TestCaseError::fail)
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}
