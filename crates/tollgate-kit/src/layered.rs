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

        /// One place, and a hundred permits.
        fn tokens_and_one_stream() -> ::std::sync::Arc<::tollgate::JointLimiter<(u8, u8), ::tollgate::MockClock>> {
            let builder = ::tollgate::JointLimiter::builder()
                .dimension("tokens", [::tollgate::Quota::per_hour(100)])
                .dimension("streams", [::tollgate::Quota::concurrent(1)]);
            builder.clock(::tollgate::MockClock::new()).build().unwrap().into()
        }

        /// The permits and the places left of that limiter.
        fn left(limiter: &::tollgate::JointLimiter<(u8, u8), ::tollgate::MockClock>) -> Vec<u32> {
            limiter.peek((1, 2)).unwrap().quotas().map(|quota| quota.remaining()).collect()
        }

        #[test]
        fn a_further_charge_is_not_denied_by_the_place_of_its_own_request() {
            use $krate::constant;

            let limiter = tokens_and_one_stream();
            let limit = $krate::$Limit::new(::std::sync::Arc::clone(&limiter));
            let send = $served(&limit.clone().key((constant(1), constant(2))).cost(|_| 10).cost_after(|_| 39));
            for tokens in [51, 2, 0] {
                assert_eq!(send("GET", "/", &[]).status, 200);
                assert_eq!(left(&limiter), [tokens, 1], "what is left is taken, and the place is free");
                if tokens == 2 {
                    break;
                }
            }
            // In a handler.
            let limiter = tokens_and_one_stream();
            let mut charge = $krate::$Limit::new(::std::sync::Arc::clone(&limiter)).charge((Some(1), Some(2))).unwrap();
            charge.more(9);
            assert_eq!(left(&limiter), [90, 0]);
            charge.more(1000);
            assert_eq!(left(&limiter), [0, 0]);
            drop(charge);
            // There is nothing to charge.
            let one = ::std::sync::Arc::new(::tollgate::DirectLimiter::new(::tollgate::Quota::concurrent(1)).unwrap());
            let mut charge = $krate::$Limit::new(::std::sync::Arc::clone(&one)).charge_n((), 5).unwrap();
            charge.more(u32::MAX);
            assert_eq!(one.peek().remaining(), 0);
            drop(charge);
            assert_eq!(one.peek().remaining(), 1);
        }

        #[test]
        fn a_charge_that_is_settled_at_the_end_of_a_body_holds_its_place_until_then() {
            let limiter = tokens_and_one_stream();
            let limit = $krate::$Limit::new(::std::sync::Arc::clone(&limiter));
            let key = || (Some(1), Some(2));
            for (actual, tokens) in [(Some(20), 80), (None, 50), (Some(90), 0)] {
                let charge = limit.charge_n(key(), 30).unwrap();
                // The head of the answer is sent now.
                let _ = charge.fields();
                let denied = limit.charge(key()).unwrap_err();
                assert_eq!((denied.kind(), denied.retry_after()), ($krate::DenialKind::InFlight, None));
                assert_eq!(denied.to_string(), "the call is denied: too many requests are in flight");
                // The stream ends; or it is dropped, and keeps the estimate.
                ::std::thread::spawn(move || actual.map(|actual| drop(charge.settle(actual)))).join().unwrap();
                assert_eq!(left(&limiter), [tokens, 1]);
            }
            assert_eq!(limit.charge_n(key(), 30).unwrap_err().kind(), $krate::DenialKind::Quota);
        }

        /// Also by the limit of a key, at another cost, and by a switch: each request is over in the end.
        #[test]
        fn a_place_is_free_after_each_answer() {
            use ::tollgate::{Limiter, Quota};
            use $krate::constant;

            let of_keys = Limiter::builder(Quota::concurrent(9)).keys_with_quotas(1).build().unwrap();
            of_keys.set_quotas_of(1, &[Quota::concurrent(1)]).unwrap();
            let (of_keys, switch) = (::std::sync::Arc::new(of_keys), $krate::ShadowSwitch::on());
            let limit = $krate::$Limit::new(::std::sync::Arc::clone(&of_keys)).key(constant(1)).cost(|_| 5);
            let send = $served(&limit.clone().headers($krate::Headers::XRateLimit));
            let shadowed = $served(&limit.clone().shadow(switch.clone()).refund_unanswered(true));
            for _ in 0..3 {
                let answer = send("GET", "/", &[]);
                let [limit, left, reset] = ["limit", "remaining", "reset"].map(|it| format!("x-ratelimit-{it}"));
                assert_eq!((answer.field(&limit), answer.field(&left)), (Some("1"), Some("0")));
                assert_eq!((answer.status, answer.field(&reset)), (200, None));
                assert_eq!((shadowed("GET", "/", &[]).status, of_keys.peek(1).remaining()), (200, 1));
            }
            let held = of_keys.try_enter(1).unwrap();
            let denied = send("GET", "/", &[]);
            assert_eq!(
                (denied.status, denied.field("retry-after"), denied.field("x-ratelimit-reset")),
                (429, None, None)
            );
            assert_eq!((shadowed("GET", "/", &[]).status, switch.overruled()), (200, 1));
            drop(held);
        }
    };
}
