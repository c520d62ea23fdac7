//! Policies that the limiters in use can't take on.

use std::error::Error;
use std::sync::{Arc, Mutex};

use tollgate::JointLimiter;
use tollgate_policy::{ApplyError, OfDimension, Policy, ReloadError, Reloaded, Reloader, Target};

use crate::reload::folder::{Folder, text};

/// Each with the text, the line that is to blame, and what to do.
fn others() -> [(String, usize, &'static str); 5] {
    let tenant = "\n[[dimension]]\nname = \"tenant\"\nquota = [{ limit = 5, per = \"1m\" }]\n";
    let bucket = "[[dimension]]\nname = \"user\"\nquota = [{ algorithm = \"token-bucket\", capacity = 5, refill = 1, per = \"1s\" }]";
    [
        (text(5) + tenant, 13, "no limiter has the dimension \"tenant\": remove it from the policy, or restart"),
        (tenant.to_owned(), 3, "no limiter has the dimension \"tenant\""),
        (format!("# The cap.\nkey_cap = 5\n{}", text(5)), 2, "`key_cap` can't change from 1048576 to 5 in use"),
        (
            format!("\n{bucket}"),
            3,
            "dimension \"user\": a sliding window log can't become a token bucket: build another",
        ),
        (text(5).replace("limit = 5", "limit = 5\nname = \"é\""), 6, ""),
    ]
}

#[test]
fn another_structure_is_refused_with_file_and_line_and_remedy() {
    let (folder, reloader) = Folder::new();
    for (other, line, remedy) in others() {
        folder.write(&other);
        let Reloaded::Refused(error) = reloader.reload_now() else { panic!("{other}") };
        assert!(error.to_string().contains(&format!("limits.toml: line {line}")), "{error}");
        assert!(error.to_string().contains(remedy) && error.path() == folder.path(), "{error}");
        assert_eq!(folder.limits(), [1, 2]);
    }
}

/// What a limiter has and the policy lacks is told at the end of the file, where it can be added.
#[test]
fn what_the_policy_lacks_is_told_at_its_end() {
    let (folder, _) = Folder::new();
    let two = format!("{}[[dimension]]\nname = \"tenant\"\nquota = [{{ limit = 5, per = \"1m\" }}]", text(1));
    let two = two.parse::<Policy>().unwrap();
    let limiter = Arc::new(two.builder::<[u32]>().unwrap().build().unwrap());
    let reloader = Reloader::new(folder.path(), two, limiter);
    let Reloaded::Refused(error) = reloader.reload_now() else { panic!("it has one dimension") };
    assert!(matches!(&error, ReloadError::Apply { line: 10, error: ApplyError::NotInPolicy { .. }, .. }), "{error}");
    assert!(error.to_string().contains("lacks the dimension \"tenant\", which a limiter has: add it, or"), "{error}");
}

#[test]
fn new_limiters_are_built_if_the_program_says_so() {
    let (folder, _) = Folder::new();
    let policy = Policy::load(folder.path()).unwrap();
    let make = |policy: &Policy| Ok::<_, Box<dyn Error>>(Arc::new(policy.builder::<[u32]>()?.build()?));
    let old = make(&policy).unwrap();
    let current: Arc<Mutex<Arc<JointLimiter<[u32]>>>> = Arc::new(Mutex::new(Arc::clone(&old)));
    let place = Arc::clone(&current);
    let reloader = Reloader::new(folder.path(), policy, Arc::clone(&old)).rebuild_with(move |policy| {
        if policy.key_cap() == Some(7) {
            return Err("seven is too few".into());
        }
        let limiter = make(policy)?;
        *place.lock().unwrap() = Arc::clone(&limiter);
        let target: Box<dyn Target> = Box::new(limiter);
        Ok(target)
    });
    let names = || {
        let limiter = Arc::clone(&current.lock().unwrap());
        limiter.dimensions().map(|(name, quotas)| format!("{name} {}", quotas[0].limit())).collect::<Vec<_>>()
    };
    // What the limiter can take on needs no new one.
    folder.write(text(3));
    assert_eq!((reloader.reload_now().result(), names()), ("applied", vec!["user 3".to_owned()]));
    assert!(Arc::ptr_eq(&old, &current.lock().unwrap()));

    let two = format!("{}[[dimension]]\nname = \"tenant\"\nquota = [{{ limit = 5, per = \"1m\" }}]", text(4));
    folder.write(&two);
    assert_eq!(reloader.reload_now().result(), "rebuilt");
    assert_eq!(names(), ["user 4", "tenant 5"]);
    // The new one follows the file from now on.
    folder.write(two.replace("limit = 5", "limit = 6"));
    assert_eq!((reloader.reload_now().result(), names()[1].as_str()), ("applied", "tenant 6"));
    assert_eq!(old.quotas_of([1]).unwrap()[0].as_ref().unwrap()[0].limit(), 3);

    folder.write(format!("key_cap = 7\n{two}"));
    let refused = reloader.reload_now();
    assert!(refused.to_string().ends_with("limits.toml: no new limiter: seven is too few"), "{refused}");
    assert_eq!(reloader.policy().key_cap(), None);
}

#[test]
fn a_dimension_that_no_limiter_has_is_refused_for_several_limiters_too() {
    let policy = text(1).parse::<Policy>().unwrap();
    let users = Arc::new(policy.builder_of::<u32>("user").unwrap().build().unwrap());
    let targets = vec![OfDimension::new("user", Arc::clone(&users)), OfDimension::new("tenant", users)];
    let other = text(2).replace("user", "tenants").parse::<Policy>().unwrap();
    assert_eq!(other.apply(&targets), Err(ApplyError::NotInLimiter { dimension: "tenants".to_owned() }));
    assert_eq!(policy.apply(&targets), Err(ApplyError::NotInPolicy { dimension: "tenant".to_owned() }));
}
