//! Both limiters and the oracle, compared after each operation.

use super::*;

struct Three {
    clock: CountedClock,
    now: u64,
    strict: Limiter,
    shadow: Limiter,
    oracle: Oracle,
    /// Admitted, and denied.
    decisions: (u64, u64),
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("few")
}

fn log(limit: usize, window: u64) -> Quota {
    Quota::new(number(limit), Duration::from_nanos(window))
}

impl Three {
    fn new(limits: [usize; DIMENSIONS], penalties: [Option<naive::Penalty>; DIMENSIONS]) -> Self {
        let clock = CountedClock::new();
        let limiter = |shadow: bool| {
            let builder = JointLimiter::<[u32]>::builder().clock(clock.clone()).shadow(shadow).count_decisions(true);
            let builder = builder.list_cap(1000).keys_with_quotas(8);
            let builder =
                (0..DIMENSIONS).fold(builder, |it, at| it.dimension(at.to_string(), [log(limits[at], WINDOWS[at])]));
            let given = penalties.iter().enumerate().filter_map(|(at, penalty)| Some((at, (*penalty)?)));
            given.fold(builder, |builder, (at, it)| builder.penalty(at, of_library(it))).build().expect("good")
        };
        let (strict, shadow) = (limiter(false), limiter(true));
        let (own, keys, allowed, barred) = (HashMap::new(), HashMap::new(), HashSet::new(), HashSet::new());
        let oracle = Oracle { limits, own, penalties, keys, allowed, barred, begun: 0 };
        Self { clock, now: 0, strict, shadow, oracle, decisions: (0, 0) }
    }

    fn both(&self) -> [&Limiter; 2] {
        [&self.strict, &self.shadow]
    }

    /// Whether the request can be decided. If not, the limiters are asked to say so.
    fn can_ask(&self, keys: &Keys, cost: usize) -> bool {
        let error = if named(keys).next().is_none() {
            Some(JointError::NoKeys)
        } else {
            let is_barred = named(keys).any(|name| self.oracle.barred.contains(&name));
            let is_over = |name| !self.oracle.allowed.contains(&name) && self.oracle.limit(name) < cost;
            let over = named(keys).find(|&name| !is_barred && is_over(name));
            over.map(|_| self.strict.try_acquire_n(keys, number(cost)).expect_err("over the limit"))
        };
        if let Some(error) = error {
            assert!(matches!(error, JointError::NoKeys | JointError::Cost(_)));
            // A cost above a limit is overruled.
            let shadow = |decision: Decision| match decision {
                Decision::Admitted(admission) => admission.overruled().expect("a denial").retry_after(),
                Decision::Denied(_) => panic!("a shadow denies nobody"),
            };
            let right = if error == JointError::NoKeys { Err(error) } else { Ok(Duration::MAX) };
            assert_eq!(self.shadow.try_acquire_n(keys, number(cost)).map(shadow), right);
            assert_eq!(self.shadow.peek_n(keys, number(cost)).map(|status| shadow(status.decision())), right);
            assert_eq!(self.strict.try_acquire_n(keys, number(cost)), Err(error));
            assert_eq!(self.strict.peek_n(keys, number(cost)), Err(error));
        }
        error.is_none()
    }

    fn count(&mut self, told: &Told) {
        let denied = u64::from(matches!(told, Told::Barred(_) | Told::Denied(_)));
        self.decisions = (self.decisions.0 + 1 - denied, self.decisions.1 + denied);
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Acquire { keys, cost } if self.can_ask(&keys, cost) => {
                let right = self.oracle.acquire(&keys, self.now, cost);
                if cost > 0 {
                    self.count(&right);
                }
                let said = self.both().map(|it| it.try_acquire_n(keys, number(cost)).expect("fits"));
                self.compare(&right, said);
            }
            Op::AcquireMany(requests) => {
                let said = self.both().map(|it| it.try_acquire_many(requests));
                for (at, keys) in requests.iter().enumerate() {
                    if named(keys).next().is_none() {
                        assert!(said.iter().all(|said| said[at] == Err(JointError::NoKeys)));
                        continue;
                    }
                    let right = self.oracle.acquire(keys, self.now, 1);
                    self.count(&right);
                    self.compare(&right, [said[0][at], said[1][at]].map(|it| it.expect("keys")));
                }
            }
            Op::Reserve { keys, keep } if self.can_ask(&keys, 1) => {
                let before = self.oracle.keys.clone();
                let right = self.oracle.acquire(&keys, self.now, 1);
                self.count(&right);
                let is_denied = matches!(right, Told::Barred(_) | Told::Denied(_));
                let charged = u32::from(right == Told::Charged);
                for (limiter, denies) in [(&self.strict, is_denied), (&self.shadow, false)] {
                    match limiter.reserve(keys, 1) {
                        Ok(reservation) if keep => assert!(!denies && reservation.commit().cost() == 1),
                        Ok(reservation) => assert!(!denies && reservation.cancel() == charged),
                        Err(error) => assert!(denies && error.denial().is_some()),
                    }
                }
                if !keep && charged == 1 {
                    self.oracle.keys = before;
                }
            }
            Op::Peek { keys, cost } if self.can_ask(&keys, cost) => {
                let right = self.oracle.look(&keys, self.now, cost);
                let said = self.both().map(|it| it.peek_n(keys, number(cost)).expect("fits").decision());
                self.compare(&right, said);
            }
            Op::Allow(keys) if self.can_ask(&keys, 0) => {
                let new = named(&keys).fold(false, |any, name| any | self.oracle.allowed.insert(name));
                assert_eq!(self.both().map(|it| it.allow(keys).expect("room")), [new; 2]);
            }
            Op::Deny(keys) if self.can_ask(&keys, 0) => {
                let new = named(&keys).fold(false, |any, name| any | self.oracle.barred.insert(name));
                assert_eq!(self.both().map(|it| it.deny(keys).expect("room")), [new; 2]);
            }
            Op::Unlist(keys) if self.can_ask(&keys, 0) => {
                let oracle = &mut self.oracle;
                let off = |any, name| any | oracle.allowed.remove(&name) | oracle.barred.remove(&name);
                let were = named(&keys).fold(false, off);
                assert_eq!(self.both().map(|it| it.unlist(keys).expect("keys")), [were; 2]);
            }
            Op::Forget(keys) if self.can_ask(&keys, 0) => {
                named(&keys).for_each(|name| drop(self.oracle.keys.remove(&name)));
                let _ = self.both().map(|it| it.forget(keys).expect("keys"));
            }
            Op::OwnLimit { name: (at, key), limit } => {
                self.oracle.own.insert((at, key), limit);
                let mut keys = [None; DIMENSIONS];
                keys[at] = Some(key);
                let quotas = [log(limit, WINDOWS[at])];
                self.both().iter().for_each(|it| it.set_quotas_of(keys, &quotas).expect("a log"));
                let told = self.both().map(|it| it.quotas_of(keys).expect("keys")[at].as_ref().expect("a key")[0]);
                assert_eq!(told, [quotas[0]; 2]);
            }
            Op::Clear => {
                self.oracle.keys.clear();
                self.both().iter().for_each(|it| it.clear());
            }
            Op::Advance(by) => self.advance(by),
            Op::AdvanceToRetry { keys, cost, exactly } if self.can_ask(&keys, cost) => {
                if let Told::Denied(ways) = self.oracle.look(&keys, self.now, cost) {
                    let wait = ways.iter().flatten().map(|(_, wait)| *wait).max().expect("in the way");
                    self.advance(wait - u64::from(!exactly));
                }
            }
            _ => {}
        }
        for limiter in self.both() {
            let counts = limiter.counts();
            let decisions = counts.decisions.expect("asked for");
            assert_eq!((decisions.admitted, decisions.denied), self.decisions);
            assert_eq!((counts.penalties, counts.penalties_refused), (self.oracle.begun, 0));
            assert_eq!(counts.listed, self.oracle.allowed.len() + self.oracle.barred.len());
        }
    }

    fn advance(&mut self, by: u64) {
        self.now += by;
        self.clock.set(self.now);
    }

    fn compare(&self, right: &Told, [strict, shadow]: [Decision; 2]) {
        self.compare_one(right, strict);
        let Decision::Admitted(admission) = shadow else { panic!("a shadow denies nobody") };
        let is_denied = matches!(right, Told::Barred(_) | Told::Denied(_));
        assert_eq!(admission.overruled().is_some(), is_denied);
        self.compare_one(right, admission.overruled().map_or(shadow, Decision::Denied));
    }

    fn compare_one(&self, right: &Told, said: Decision) {
        let about = format!("{said:?} at {}", self.now);
        match (right, said) {
            (Told::Charged, Decision::Admitted(admission)) => assert!(admission.is_counted(), "{about}"),
            (Told::Uncharged, Decision::Admitted(admission)) => assert!(!admission.is_counted(), "{about}"),
            (Told::Barred(dimensions), Decision::Denied(denial)) => {
                assert_eq!((denial.reason(), denial.retry_after()), (DenialReason::DenyList, Duration::MAX), "{about}");
                assert_eq!(&denial.violated().collect::<Vec<_>>(), dimensions, "{about}");
                assert!(dimensions.contains(&denial.dimension()), "{about}");
            }
            (Told::Denied(ways), Decision::Denied(denial)) => {
                let longest = ways.iter().flatten().map(|(_, wait)| *wait).max().expect("in the way");
                assert_eq!(denial.retry_after(), Duration::from_nanos(longest), "{about}: {ways:?}");
                let (block, wait) = ways[denial.dimension()].expect("it is in the way");
                assert_eq!(wait, longest, "{about}: {ways:?}");
                let reason = if block.is_some() { DenialReason::Penalty } else { DenialReason::Quota };
                assert_eq!((denial.reason(), denial.block()), (reason, block), "{about}: {ways:?}");
                let violated: Vec<usize> = (0..DIMENSIONS).filter(|&at| ways[at].is_some()).collect();
                assert_eq!(denial.violated().collect::<Vec<_>>(), violated, "{about}: {ways:?}");
            }
            _ => panic!("{right:?}, not {about}"),
        }
    }
}

fn penalty() -> impl Strategy<Value = Option<naive::Penalty>> {
    let lengths = || prop_oneof![Just(1_u64), Just(10), Just(35), 1_u64..200];
    prop::option::weighted(0.7, penalties(1..4, lengths))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn several_dimensions_give_the_same_answers_to_the_nanosecond(
        limits in prop::array::uniform3(1_usize..4),
        penalties in prop::array::uniform3(penalty()),
        ops in prop::collection::vec(op(), 1..150),
    ) {
        let mut three = Three::new(limits, penalties);
        for op in ops {
            three.apply(op);
        }
    }
}
