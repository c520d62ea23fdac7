//! A cluster of one node: keys of one request must have one hash tag.

use std::time::{Duration, Instant};

use tollgate::Quota;
use tollgate_redis::{Cause, RedisJointLimiter, RedisLimiter, StoreError};

use tollgate_kit::redis::{Server, ask, free_port, runtime};

#[test]
fn a_cluster_takes_several_keys_by_their_hash_tag() {
    let port = free_port().to_string();
    let options = ["--cluster-enabled", "yes", "--port", &port, "--bind", "127.0.0.1"];
    let Some(server) = Server::start(&options) else { return };
    let mut connection = server.connect();
    let _: redis::Value = ask(&mut connection, &["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    let until = Instant::now() + Duration::from_secs(30);
    while !ask::<String>(&mut connection, &["CLUSTER", "INFO"]).contains("cluster_state:ok") {
        assert!(Instant::now() < until, "the cluster does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    let store = server.store();
    let builder = || {
        let builder = RedisJointLimiter::builder(&store, "api").dimension("user", [Quota::per_hour(1)]);
        builder.dimension("tenant", [Quota::per_hour(2)])
    };
    let (apart, together) = (builder().build().unwrap(), builder().hash_tag("api").build().unwrap());
    let keys: [Option<&[u8]>; 2] = [Some(b"alice"), Some(b"acme")];
    runtime().block_on(async {
        let single = RedisLimiter::new(&store, "single", Quota::per_hour(1)).unwrap();
        for user in 0..20_u32 {
            assert!(single.try_acquire(user.to_string()).await.unwrap().is_admitted());
        }
        assert!(together.try_acquire(&keys).await.unwrap().is_admitted());
        assert!(together.try_acquire(&keys).await.unwrap().is_denied());
        let Err(StoreError::Unavailable(error)) = apart.try_acquire(&keys).await else { panic!() };
        assert_eq!((error.cause(), error.is_perhaps_charged()), (Cause::OtherSlot, false));
        // Nothing was charged.
        assert!(apart.try_acquire(&[Some(b"alice"), None]).await.unwrap().is_admitted());
    });
}
