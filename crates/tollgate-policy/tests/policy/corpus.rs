//! The corpus of policies that all ways to limit decide alike: what it has, and that each feature
//! changes answers. The other ways are compared with the one in process by their own tests.

use std::collections::HashSet;

use tollgate_kit::corpus::{Answer, cases, in_process, requests};

#[test]
fn each_feature_and_each_pair_is_there_and_each_changes_answers() {
    let (cases, requests) = (cases(), requests());
    let features: HashSet<_> = cases.iter().filter(|case| case.features.len() == 1).map(|it| it.features[0]).collect();
    let pairs = cases.iter().filter(|case| case.features.len() == 2).count();
    assert_eq!(pairs, features.len() * (features.len() - 1) / 2);
    assert!(cases.len() >= 60, "{}", cases.len());
    let plain = in_process(&cases[0].policy, &requests);
    assert!(plain.contains(&Answer::Admitted) && plain.contains(&Answer::Denied));
    for case in cases.iter().filter(|case| case.features.len() == 1) {
        let answers = in_process(&case.policy, &requests);
        // What a dimension in shadow mode denies is admitted.
        let changes = !case.has(&["a dimension in shadow mode"]);
        assert_eq!(answers != plain, changes, "{case:?}");
        let denies = case.has(&["a rule that denies", "an endpoint that is off"]);
        assert_eq!(answers.contains(&Answer::ByRule), denies, "{case:?}");
    }
}
