//! Limiters of policy files with a `[store]`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tollgate_policy::Policy;
use tollgate_redis::{BuildError, RedisJointLimiter};

use tollgate_kit::redis::{Server, ask, runtime};

const DIMENSION: &str = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1h\" }]\n";

/// A folder with a secret in a file.
fn secret(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn policy(url: &str, secret: &Path, more: &str) -> Policy {
    let secret = secret.display();
    let text = format!("[store]\nurl = \"{url}\"\nsecret = {{ file = \"{secret}\" }}\n{more}\n{DIMENSION}");
    Policy::from_toml(&text).unwrap()
}

#[test]
fn two_nodes_that_read_the_same_file_share_its_limits() {
    let Some(server) = Server::start(&[]) else { return };
    let (_folder, path) = secret("the secret of all nodes\n");
    let node = |name: &str| {
        let more = format!("timeout = \"20s\"\nconnect_timeout = \"20s\"\nname = \"{name}\"\nprefix = \"shop\"");
        RedisJointLimiter::from_policy(&policy(&server.address(), &path, &more)).unwrap().build().unwrap()
    };
    runtime().block_on(async {
        let (one, two, other) = (node("api"), node("api"), node("other"));
        for node in [&one, &two, &two, &one, &two] {
            assert!(node.try_acquire(&[Some(b"alice")]).await.unwrap().is_admitted());
        }
        assert!(one.try_acquire(&[Some(b"alice")]).await.unwrap().is_denied());
        assert!(two.try_acquire(&[Some(b"alice")]).await.unwrap().is_denied());
        assert!(other.try_acquire(&[Some(b"alice")]).await.unwrap().is_admitted(), "another name, other permits");
    });
    let keys: Vec<String> = ask(&mut server.connect(), &["KEYS", "*"]);
    assert!(keys.len() == 2 && keys.iter().all(|key| key.starts_with("shop:")), "{keys:?}");
}

/// The cap of the file is that of the limiter in process, which decides here alone: nobody listens.
#[test]
fn the_cap_on_keys_is_for_the_local_limiter() {
    let (folder, path) = secret("the secret of all nodes");
    let url = format!("redis+unix://{}", folder.path().join("nobody").display());
    let text = format!("key_cap = 2\n{}", policy(&url, &path, "on_failure = \"local\"\nnodes = 1"));
    let limiter = RedisJointLimiter::from_policy(&Policy::from_toml(&text).unwrap()).unwrap().build().unwrap();
    runtime().block_on(async {
        for (user, is_admitted) in [("a", true), ("b", true), ("c", false), ("a", true)] {
            let decision = limiter.try_acquire(&[Some(user.as_bytes())]).await.unwrap();
            assert_eq!(decision.is_admitted(), is_admitted, "{user}");
        }
    });
    assert_eq!((limiter.counts().admitted_locally, limiter.counts().denied_locally), (3, 1));
}

#[test]
fn what_the_table_says_reaches_the_store_and_the_limiter() {
    let (folder, path) = secret("sixteen bytes or more");
    let of = |more: &str| RedisJointLimiter::from_policy(&policy("redis://host", &path, more));
    assert_eq!(of("prefix = \"a{b\"").unwrap_err(), BuildError::BadPrefix);
    // A share of 5 for 6 nodes is less than one permit.
    let error = of("on_failure = \"local\"\nnodes = 6").unwrap().build().unwrap_err();
    assert!(matches!(error, BuildError::NoShare { nodes: 6, .. }));
    assert_eq!(of("hash_tag = \"a b\"").unwrap().build().unwrap_err(), BuildError::BadPrefix);
    let (_folder, short) = secret("short");
    let error = RedisJointLimiter::from_policy(&policy("redis://host", &short, "")).unwrap_err();
    assert_eq!(error, BuildError::ShortSecret { bytes: 5, least: 16 });
    let gone = RedisJointLimiter::from_policy(&policy("redis://host", &folder.path().join("gone"), "")).unwrap_err();
    assert!(matches!(&gone, BuildError::Unread { field: "secret", .. }) && gone.to_string().contains("gone"));
    let in_process = Policy::from_toml(DIMENSION).unwrap();
    assert_eq!(RedisJointLimiter::from_policy(&in_process).unwrap_err(), BuildError::NoStore);
}

#[test]
fn leases_are_of_one_quantised_log_of_one_dimension() {
    let Some(server) = Server::start(&[]) else { return };
    let (_folder, path) = secret("sixteen bytes or more");
    let text = |quotas: &str| {
        let policy = policy(
            &server.address(),
            &path,
            "timeout = \"20s\"\nconnect_timeout = \"20s\"\nlease = { most = 9, slots = 64 }",
        )
        .to_string();
        let (store, _) = policy.split_once("[[dimension]]").unwrap();
        format!("{store}\n[[dimension]]\nname = \"user\"\nquota = [{quotas}]\n")
    };
    let of = |text: &str| RedisJointLimiter::from_policy(&Policy::from_toml(text).unwrap()).unwrap().build();
    // A step of a day: it does not end while this runs.
    let quantised = r#"{ algorithm = "quantised-log", limit = 200, per = "1d", resolution = "1d" }"#;
    let log = r#"{ limit = 200, per = "1h" }"#;
    let two = format!("{}\n[[dimension]]\nname = \"tenant\"\nquota = [{quantised}]", text(quantised));
    for refused in [text(log), two] {
        let error = of(&refused).unwrap_err();
        assert!(matches!(&error, BuildError::NoLease { .. }), "{refused}: {error}");
        assert!(error.to_string().contains("give one dimension one quota, a quantised log"), "{error}");
    }
    let limiter = of(&text(quantised)).unwrap();
    runtime().block_on(async {
        let keys: [Option<&[u8]>; 1] = [Some(b"alice")];
        for spent in 1..=40 {
            let status = limiter.try_acquire_known(&keys, 1).await.unwrap();
            assert!(status.decision().is_admitted());
            assert_eq!((status.limit(), status.remaining()), (200, 200 - spent));
            let (next, reset) = (status.next_after(), status.reset_after());
            assert!(reset <= Duration::from_secs(2 * 86_400) && !next.is_zero(), "{status:?}");
        }
        for _ in 0..20 {
            assert!(limiter.try_acquire(&keys).await.unwrap().is_admitted());
        }
        let counts = limiter.counts();
        assert_eq!(counts.admitted + counts.admitted_by_lease, 60);
        assert!(counts.calls < 15, "{counts:?}");
        // What a lease holds is this node's. The store counts it as taken.
        let held = counts.leased - counts.admitted_by_lease;
        assert!(held > 0, "{counts:?}");
        let of_store = limiter.try_acquire_status(&keys, 1).await.unwrap().remaining();
        assert_eq!(u64::from(of_store), 200 - 61 - held);
        assert_eq!(limiter.give_back_leases().await.map(u64::from), Ok(held));
        assert_eq!(limiter.peek(&keys, 1).await.unwrap().remaining(), 200 - 61);
    });
}

/// By a cached denial one quota is known: that which decides the wait.
#[test]
fn a_cached_denial_tells_the_quota_that_decides_it() {
    let Some(server) = Server::start(&[]) else { return };
    let (_folder, path) = secret("sixteen bytes or more");
    let limiter = policy(&server.address(), &path, "timeout = \"20s\"\nconnect_timeout = \"20s\"\ncache_denials = 100");
    let limiter = RedisJointLimiter::from_policy(&limiter).unwrap().build().unwrap();
    runtime().block_on(async {
        let keys: [Option<&[u8]>; 1] = [Some(b"alice")];
        assert!(limiter.try_acquire_known(&keys, 4).await.unwrap().decision().is_admitted());
        for _ in 0..2 {
            let status = limiter.try_acquire_known(&keys, 3).await.unwrap();
            let left = status.tightest().unwrap();
            assert!(status.decision().is_denied() && left.remaining() < 3, "{status:?}");
            assert_eq!((left.dimension(), left.quota(), left.limit()), (0, 0, 5));
        }
        assert_eq!((limiter.counts().denied, limiter.counts().denied_by_cache), (1, 1));
    });
}

#[test]
fn what_no_store_keeps_is_refused() {
    let (_folder, path) = secret("sixteen bytes or more");
    let with = |head: &str, tail: &str| {
        let text = format!("{head}\n{}{tail}", policy("redis://host", &path, ""));
        RedisJointLimiter::from_policy(&Policy::from_toml(&text).unwrap()).map(drop)
    };
    let refused = |what| Err(BuildError::NotOnAStore { what });
    assert_eq!(with("shadow = true", ""), refused("shadow"));
    assert_eq!(with("enforced_percent = 99", ""), refused("enforced_percent"));
    let penalty = "[dimension.penalty]\ndenials = 3\nwithin = \"1m\"\nblocked_for = \"1h\"";
    assert_eq!(with("", penalty), refused("penalty"));
    assert_eq!(with("shadow = false\nkey_cap = 7", ""), Ok(()));
    assert_eq!(with("enforced_percent = 100", ""), Ok(()));
}
