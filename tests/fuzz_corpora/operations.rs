//! What fuzzing found worth keeping, and scripts that nobody chose, played on every run of the
//! tests.

use std::fs;
use std::path::PathBuf;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tollgate_kit::fuzz::operations::Script;

/// Fewer seeds than this would mean that the corpus was not found or no longer says anything.
const LEAST_SEEDS: usize = 20;

#[test]
fn every_seed_of_the_corpus() {
    let corpus: PathBuf = [env!("CARGO_MANIFEST_DIR"), "fuzz", "corpus", "operations"].iter().collect();
    let mut played = 0;
    for seed in fs::read_dir(&corpus).expect("the corpus is part of the repository") {
        let path = seed.expect("a readable directory").path();
        let bytes = fs::read(&path).expect("a readable seed");
        let script = Script::decode(&bytes).unwrap_or_else(|| panic!("{} says nothing", path.display()));
        if let Err(difference) = script.run() {
            panic!("{}: {difference}\n{script:#?}", path.display());
        }
        played += 1;
    }
    assert!(played >= LEAST_SEEDS, "only {played} seeds in {}", corpus.display());
}

/// The same bytes in each run, and the fewest of them that fail if any do.
#[test]
fn random_bytes() {
    let config = Config { cases: 2000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let result = runner.run(&vec(any::<u8>(), 64..512), |bytes| {
        let script = Script::decode(&bytes).expect("64 bytes are a script");
        script.run().map_err(|difference| TestCaseError::fail(format!("{difference}\n{script:#?}")))
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}
