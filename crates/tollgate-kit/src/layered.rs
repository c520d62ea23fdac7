//! What the limits of all frameworks do alike. A macro, since each framework has types of its own.

/// The answer to a request with this method, path and header fields.
pub type Send = Box<dyn Fn(&str, &str, &[(&str, &str)]) -> crate::limited::Answer + core::marker::Send + Sync>;

/// The tests of a framework's crate, whose limit is of this type. `$served` makes a [`Send`] of a limit.
#[macro_export]
macro_rules! limited_alike {
    ($krate:ident::$Limit:ident, $served:ident) => {
        #[test]
        fn a_switch_lets_denied_requests_pass_and_counts_them() {
            let limiter = ::tollgate::DirectLimiter::new(::tollgate::Quota::per_hour(1)).unwrap();
            let switch = $krate::ShadowSwitch::on();
            let send = $served(&$krate::$Limit::new(limiter.into()).shadow(switch.clone()));
            let get = || send("GET", "/", &[]);
            let admitted = get();
            assert!(admitted.status == 200 && admitted.field("ratelimit").is_some(), "{admitted:?}");
            for round in 1..=3 {
                switch.set(false);
                assert_eq!((get().status, switch.overruled()), (429, round - 1));
                switch.set(true);
                let overruled = get();
                assert_eq!((overruled.status, switch.overruled()), (200, round));
                for name in ["ratelimit", "ratelimit-policy", "retry-after"] {
                    assert_eq!(overruled.field(name), None, "{name}");
                }
            }
        }

        #[test]
        fn preflights_are_limited_unless_asked_otherwise() {
            let preflight = [("origin", "https://example.com"), ("access-control-request-method", "PUT")];
            for skip in [false, true] {
                let limiter = ::tollgate::DirectLimiter::new(::tollgate::Quota::per_hour(1)).unwrap();
                let send = $served(&$krate::$Limit::new(limiter.into()).skip_preflights(skip));
                let status = |method: &str, fields: &[(&str, &str)]| send(method, "/", fields).status;
                assert_eq!(status("GET", &[]), 200);
                assert_eq!(status("OPTIONS", &preflight), if skip { 200 } else { 429 });
                // What is no preflight.
                for fields in [&[], &preflight[..1], &preflight[1..]] {
                    assert_eq!(status("OPTIONS", fields), 429, "{fields:?}");
                }
                assert_eq!(status("GET", &preflight), 429);
            }
        }

        #[test]
        fn a_bad_request_is_told_which_key_it_needs() {
            use $krate::{KeyError, Missing, from_head, header};

            type Keys = (String, (String, String));
            let tenant = from_head(|head| {
                let is_named = head.uri.path() != "/";
                Err::<String, _>(if is_named { KeyError::malformed() } else { KeyError::not_sent() })
            });
            let place = (header("x-zone").on_missing(Missing::Reject), tenant.naming("the name of a \"tenant\""));
            let key = (header("X-Api-Key"), place);
            let quota = ::tollgate::Quota::per_hour(9);
            let one = ::tollgate::Limiter::<Keys>::new(quota).unwrap();
            let one = $served(&$krate::$Limit::new(one.into()).key(::std::sync::Arc::new(key.clone())));
            let joint = ::tollgate::JointLimiter::builder().dimension("key", [quota]).dimension("place", [quota]);
            let joint = $served(&$krate::$Limit::new(joint.build().unwrap().into()).key(key));
            let (key, zone) = (("x-api-key", "secret"), ("x-zone", "secret"));
            for (path, fields, needs) in [
                ("/", &[key][..], "The request needs the header field x-zone."),
                ("/", &[zone], "The request needs the header field x-api-key."),
                ("/", &[key, zone], "The request needs the name of a \"tenant\"."),
                (
                    "/a",
                    &[key, zone],
                    "The request has the name of a \"tenant\" twice, or in a form that is not accepted.",
                ),
                (
                    "/",
                    &[key, key],
                    "The request has the header field x-api-key twice, or in a form that is not accepted.",
                ),
            ] {
                for send in [&one, &joint] {
                    let answer = send("GET", path, fields);
                    assert_eq!((answer.status, answer.problem()["detail"].as_str()), (400, Some(needs)));
                }
            }
        }
    };
}
