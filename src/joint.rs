//! [`JointLimiter`]: several dimensions, each with quotas of its own, decided as one.

use core::fmt;
use core::marker::PhantomData;

use crate::caps::{AtKeyCap, DEFAULT_KEY_CAP, MAX_DIMENSIONS};
use crate::cell::{MAX_CELLS, Unchanged, Whose};
use crate::clock::{Clock, MonotonicClock};
use crate::counts::{Counts, Tally};
use crate::decision::{Admission, Decision};
use crate::error::{BuildError, JointError};
use crate::fingerprint::{DefaultFingerprinter, Fingerprint, Fingerprinter};
use crate::keys::{Dimensions, Keys};
use crate::modes::Shadow;
use crate::quota::Quota;
use crate::quotas::{Quotas, check_keys};
use crate::reservation::{Lents, LimiterId};
#[cfg(feature = "serde")]
use crate::snapshot::{RestoreError, Snapshot};
use crate::table::{Lent, Table};

/// A rate limiter in several dimensions (user, address, endpoint): a request is admitted if every one of its keys has room
/// for it, and is charged to all of them or to none.
///
/// `D` names the types of the keys, one for each dimension, in a tuple of up to eight. Keys that are swapped or of
/// another type do not compile. Each is passed in any form that [`AsKey`](crate::AsKey) allows, as an `Option` of one, or as
/// [`Absent`](crate::Absent): a dimension without a key is not asked. For a number of dimensions that is known at run
/// time only, `D` is a slice: `JointLimiter<[String]>`.
///
/// ```compile_fail,E0277
/// # use std::net::IpAddr;
/// # use tollgate::{JointLimiter, Quota};
/// # let builder = JointLimiter::<(String, IpAddr)>::builder().dimension("user", [Quota::per_minute(5)]);
/// # let limiter = builder.dimension("address", [Quota::per_minute(5)]).build().unwrap();
/// let address: IpAddr = [192, 0, 2, 7].into();
/// limiter.try_acquire((address, "alice"));
/// ```
///
/// ```compile_fail,E0277
/// # use std::net::IpAddr;
/// # use tollgate::{JointLimiter, Quota};
/// # let builder = JointLimiter::<(String, IpAddr)>::builder().dimension("user", [Quota::per_minute(5)]);
/// # let limiter = builder.dimension("address", [Quota::per_minute(5)]).build().unwrap();
/// limiter.try_acquire(("alice",));
/// ```
///
/// The decision is one, whatever other threads do: no dimension is ever over its quota, a denied request leaves no trace, and none
/// is denied for permits that another request took and then gave back. Nobody waits for anybody: whoever meets a request
/// halfway finishes it. Sources are named in the crate's `cell/joint.rs`.
///
/// ```
/// use std::net::IpAddr;
/// use std::time::Duration;
/// use tollgate::{Absent, Decision, JointLimiter, Quota};
///
/// let limiter = JointLimiter::<(String, IpAddr, String)>::builder()
///     .dimension("user", [Quota::per_second(10), Quota::per_minute(100)])
///     .dimension("address", [Quota::per_minute(2)])
///     .dimension("endpoint", [Quota::token_bucket(1000, 100, Duration::from_secs(1))])
///     .build()?;
///
/// let address: IpAddr = [192, 0, 2, 7].into();
/// assert!(limiter.try_acquire(("alice", address, "/login"))?.is_admitted());
/// // A request without a user is asked in the other dimensions only.
/// assert!(limiter.try_acquire((Absent, address, "/login"))?.is_admitted());
/// match limiter.try_acquire(("bob", address, "/login"))? {
///     Decision::Denied(denial) => assert_eq!(limiter.dimension(denial.dimension()), "address"),
///     Decision::Admitted(_) => unreachable!("two a minute"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct JointLimiter<D: ?Sized, C = MonotonicClock, F = DefaultFingerprinter> {
    table: Table,
    dimensions: Box<[Dimension]>,
    clock: C,
    fingerprinter: F,
    admits_at_cap: bool,
    tally: Option<Tally>,
    id: LimiterId,
    shadow: Option<Shadow>,
    keys: PhantomData<fn(&D)>,
}

struct Dimension {
    name: Box<str>,
}

/// The fingerprints of one request.
type Fingerprints = [Option<Fingerprint>; MAX_CELLS];

const _: () = assert!(MAX_DIMENSIONS == MAX_CELLS);

impl<D: Dimensions + ?Sized> JointLimiter<D> {
    /// Starts a limiter, to which the dimensions are added in the order in which `D` names their keys.
    pub fn builder() -> JointLimiterBuilder<D> {
        let settings = Settings {
            dimensions: Vec::new(),
            key_cap: DEFAULT_KEY_CAP,
            expected_keys: 0,
            at_key_cap: AtKeyCap::default(),
            count_decisions: false,
            shadow: false,
        };
        let (clock, fingerprinter) = (MonotonicClock::new(), DefaultFingerprinter::new());
        JointLimiterBuilder { settings, clock, fingerprinter, keys: PhantomData }
    }
}

impl<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter> JointLimiter<D, C, F> {
    /// One permit of each of the keys, now or not at all.
    ///
    /// Looks at each key, and if none is in the way looks once more and claims all of them. A
    /// denial writes nothing, with two exceptions. It finishes a request that it meets halfway. And
    /// a token bucket that does not [start full](Quota::starting_with) begins to fill with the
    /// key's first request, also if the bucket denies that.
    ///
    /// # Errors
    ///
    /// [`JointError`] when there is no key, or, for a slice, not as many keys as dimensions.
    pub fn try_acquire(&self, keys: impl Keys<D>) -> Result<Decision, JointError> {
        self.try_acquire_n(keys, 1)
    }

    /// `cost` permits of each of the keys, all of them now or none. A cost of zero charges nothing and is always admitted.
    ///
    /// # Errors
    ///
    /// [`JointError`] when there is no key, or, for a slice, not as many keys as dimensions; and when `cost` is more than a limit of one that is asked: no wait
    /// would ever be long enough.
    pub fn try_acquire_n(&self, keys: impl Keys<D>, cost: u32) -> Result<Decision, JointError> {
        self.acquire(&keys, cost, None)
    }

    fn acquire(&self, keys: &impl Keys<D>, cost: u32, lent: Option<&mut Vec<Lent>>) -> Result<Decision, JointError> {
        let keys = self.fingerprints(keys, cost)?;
        if cost == 0 {
            return Ok(Decision::Admitted(Admission::COUNTED));
        }
        let decision = self.table.acquire_together(&keys, cost, self.admits_at_cap, &self.clock, lent);
        if let Some(tally) = &self.tally {
            tally.count(decision.is_admitted());
        }
        Ok(match &self.shadow {
            Some(shadow) if decision.is_denied() => {
                shadow.count();
                decision.overrule()
            }
            _ => decision,
        })
    }

    /// Changes the quotas of one dimension.
    pub(crate) fn change(&self, dimension: usize, quotas: &[Quota]) -> Result<(), Unchanged> {
        self.table.change(dimension, Whose::All, quotas, &self.clock)
    }

    pub(crate) fn id(&self) -> LimiterId {
        self.id
    }

    /// Decides a request, and says what could be given back of it.
    pub(crate) fn acquire_to_lend(&self, keys: impl Keys<D>, cost: u32) -> Result<(Decision, Lents), JointError> {
        let mut lents = Vec::new();
        let decision = self.acquire(&keys, cost, Some(&mut lents))?;
        Ok((decision, Lents::Several(lents.into())))
    }

    pub(crate) fn give_back(&self, lents: &Lents) -> u32 {
        let Lents::Several(lents) = lents else { return 0 };
        let given = lents.iter().map(|lent| self.table.give_back(lent, &self.clock));
        given.fold(0, u32::max)
    }

    /// What [`try_acquire_n`](Self::try_acquire_n) would answer now; charges nothing and writes
    /// nothing. The delay is that of the longest queue, and new keys are told if there is no place
    /// for them.
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    pub fn peek_n(&self, keys: impl Keys<D>, cost: u32) -> Result<Decision, JointError> {
        let keys = self.fingerprints(&keys, cost)?;
        if cost == 0 {
            return Ok(Decision::Admitted(Admission::COUNTED));
        }
        let decision = self.table.preview_together(&keys, cost, self.admits_at_cap, &self.clock);
        Ok(if self.shadow.is_some() { decision.overrule() } else { decision })
    }

    /// Gives each of these keys its full quota back, in its own dimension. Says whether anything was held for one of them.
    ///
    /// # Errors
    ///
    /// [`JointError`] when there is no key, or, for a slice, not as many keys as dimensions.
    pub fn forget(&self, keys: impl Keys<D>) -> Result<bool, JointError> {
        let keys = self.fingerprints(&keys, 0)?;
        let held = keys.iter().flatten().map(|&key| self.table.forget(key, &self.clock));
        Ok(held.fold(false, |any, held| any | held))
    }

    /// Forgets every key.
    pub fn clear(&self) {
        self.table.clear(&self.clock);
    }

    /// What the limiter holds and has done, in all dimensions together. Takes time in proportion to the cells.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let held = self.table.held(&self.clock);
        let names = self.dimensions.iter().map(|dimension| dimension.name.len());
        Counts {
            live_keys: held.live_keys,
            cells: held.cells,
            bytes: size_of::<Self>()
                + held.bytes
                + size_of_val(&*self.dimensions)
                + names.sum::<usize>()
                + self.tally.as_ref().map_or(0, Tally::bytes)
                + self.shadow.as_ref().map_or(0, Shadow::bytes),
            decisions: self.tally.as_ref().map(Tally::totals),
            refused_at_cap: held.refused_at_cap,
            overruled: self.shadow.as_ref().map_or(0, Shadow::overruled),
            penalties: 0,
            penalties_refused: 0,
            listed: 0,
        }
    }

    /// What the limiter holds, to be restored after a restart; see [`Snapshot`].
    #[cfg(feature = "serde")]
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let quotas: Vec<&[Quota]> = self.dimensions().map(|(_, quotas)| quotas).collect();
        Snapshot::take(&self.table, &quotas, &self.fingerprinter, &self.clock)
    }

    /// The name of a dimension, by its place.
    ///
    /// # Panics
    ///
    /// When there are not so many dimensions.
    #[must_use]
    pub fn dimension(&self, place: usize) -> &str {
        &self.dimensions[place].name
    }

    /// The dimensions, in order: their names, and the quotas that each of their keys has.
    pub fn dimensions(&self) -> impl ExactSizeIterator<Item = (&str, &[Quota])> {
        let quotas = |dimension| &*self.table.revision(dimension).quotas;
        self.dimensions.iter().enumerate().map(move |(at, dimension)| (&*dimension.name, quotas(at)))
    }

    /// The clock that decisions are taken by.
    #[must_use]
    pub fn clock(&self) -> &C {
        &self.clock
    }

    fn fingerprints(&self, keys: &impl Keys<D>, cost: u32) -> Result<Fingerprints, JointError> {
        let mut fingerprints: Fingerprints = [None; MAX_CELLS];
        let (mut given, mut checked) = (0, Ok(()));
        keys.each(&self.fingerprinter, |fingerprint| {
            if let (Some(fingerprint), Some(_)) = (fingerprint, self.dimensions.get(given)) {
                fingerprints[given] = Some(fingerprint.in_dimension(given));
                checked = checked.and(self.table.revision(given).check_cost(cost));
            }
            given += 1;
        });
        let dimensions = self.dimensions.len();
        if given != dimensions {
            return Err(JointError::WrongNumberOfKeys { keys: given, dimensions });
        }
        if fingerprints.iter().all(Option::is_none) {
            return Err(JointError::NoKeys);
        }
        checked?;
        Ok(fingerprints)
    }
}

impl<D: ?Sized, C: fmt::Debug, F> fmt::Debug for JointLimiter<D, C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dimensions: Vec<_> =
            self.dimensions.iter().enumerate().map(|(at, it)| (&it.name, &self.table.revision(at).quotas)).collect();
        f.debug_struct("JointLimiter")
            .field("dimensions", &dimensions)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

/// Makes a [`JointLimiter`]. Start from [`JointLimiter::builder`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct JointLimiterBuilder<D: ?Sized, C = MonotonicClock, F = DefaultFingerprinter> {
    settings: Settings,
    clock: C,
    fingerprinter: F,
    keys: PhantomData<fn(&D)>,
}

/// What does not change the builder's type.
#[derive(Debug, Clone)]
struct Settings {
    dimensions: Vec<(Box<str>, Vec<Quota>)>,
    key_cap: usize,
    expected_keys: usize,
    at_key_cap: AtKeyCap,
    count_decisions: bool,
    shadow: bool,
}

impl<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter> JointLimiterBuilder<D, C, F> {
    /// One more dimension, with the quotas that each of its keys has: one, or several sliding window logs. Its name, which no
    /// other dimension has, is for messages.
    pub fn dimension(mut self, name: impl Into<Box<str>>, quotas: impl IntoIterator<Item = Quota>) -> Self {
        self.settings.dimensions.push((name.into(), quotas.into_iter().collect()));
        self
    }

    /// The most keys held at once, of all dimensions together; 1,048,576 unless said.
    pub fn key_cap(mut self, key_cap: usize) -> Self {
        self.settings.key_cap = key_cap;
        self
    }

    /// What a request with a new key is told at the cap: [`AtKeyCap::Deny`] unless said. With [`AtKeyCap::Admit`] the key is passed
    /// over and the others are asked; [`AtKeyCap::Share`] is not possible here.
    pub fn at_key_cap(mut self, at_key_cap: AtKeyCap) -> Self {
        self.settings.at_key_cap = at_key_cap;
        self
    }

    /// How many keys to make room for from the start; none unless said.
    pub fn expected_keys(mut self, expected_keys: usize) -> Self {
        self.settings.expected_keys = expected_keys;
        self
    }

    /// Whether to count admitted and denied requests for [`Counts`]; not unless said.
    pub fn count_decisions(mut self, count_decisions: bool) -> Self {
        self.settings.count_decisions = count_decisions;
        self
    }

    /// Whether to admit what would be denied, and tell so ([`Admission::overruled`], [`Counts::overruled`]); not unless said. As
    /// [`LimiterBuilder::shadow`](crate::LimiterBuilder::shadow).
    pub fn shadow(mut self, shadow: bool) -> Self {
        self.settings.shadow = shadow;
        self
    }

    /// The clock; [`MonotonicClock`] unless said.
    pub fn clock<T: Clock>(self, clock: T) -> JointLimiterBuilder<D, T, F> {
        let Self { settings, fingerprinter, keys, .. } = self;
        JointLimiterBuilder { settings, clock, fingerprinter, keys }
    }

    /// Another way to make fingerprints, in place of [`DefaultFingerprinter`].
    pub fn fingerprinter<G: Fingerprinter>(self, fingerprinter: G) -> JointLimiterBuilder<D, C, G> {
        let Self { settings, clock, keys, .. } = self;
        JointLimiterBuilder { settings, clock, fingerprinter, keys }
    }

    /// The limiter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when there is no dimension, more than [`MAX_DIMENSIONS`], or not as many as `D` names, a name is empty
    /// or given twice, a quota can't be used or has none to share its key with, the cap is zero or too large or less than the keys expected, or [`AtKeyCap::Share`] was asked for.
    pub fn build(self) -> Result<JointLimiter<D, C, F>, BuildError> {
        let Self { settings, clock, fingerprinter, keys } = self;
        let Settings { dimensions, key_cap, expected_keys, at_key_cap, count_decisions, shadow } = settings;
        let counts_refused = dimensions.iter().flat_map(|(_, quotas)| quotas).any(Quota::is_counting_refused);
        check_dimensions::<D>(dimensions.iter().map(|(name, _)| &**name))?;
        let dimensions = dimensions
            .into_iter()
            .map(|(name, quotas)| Ok((Dimension { name }, Quotas::new(&quotas)?.plan())))
            .collect::<Result<Vec<_>, BuildError>>()?;
        check_keys(key_cap, expected_keys)?;
        if counts_refused {
            return Err(BuildError::CountingRefusedAlone);
        }
        if at_key_cap == AtKeyCap::Share {
            return Err(BuildError::NothingToShare);
        }
        let (dimensions, plans): (Vec<_>, Vec<_>) = dimensions.into_iter().unzip();
        let dimensions = dimensions.into_boxed_slice();
        let table = Table::together(plans.into(), key_cap, expected_keys);
        let tally = count_decisions.then(Tally::new);
        let admits_at_cap = at_key_cap == AtKeyCap::Admit;
        let shadow = shadow.then(Shadow::new);
        let id = LimiterId::new();
        Ok(JointLimiter { table, dimensions, clock, fingerprinter, admits_at_cap, tally, id, shadow, keys })
    }

    /// The limiter, with what another held when the snapshot was taken; see [`Snapshot`].
    ///
    /// # Errors
    ///
    /// [`RestoreError`] when the limiter can't be built, or the snapshot is of another.
    #[cfg(feature = "serde")]
    pub fn restore(self, snapshot: &Snapshot) -> Result<JointLimiter<D, C, F>, RestoreError> {
        let elapsed = snapshot.age();
        self.restore_after(snapshot, elapsed)
    }

    /// As [`restore`](Self::restore), by so much time since the snapshot was taken.
    ///
    /// # Errors
    ///
    /// As [`restore`](Self::restore).
    #[cfg(feature = "serde")]
    pub fn restore_after(
        self,
        snapshot: &Snapshot,
        elapsed: core::time::Duration,
    ) -> Result<JointLimiter<D, C, F>, RestoreError> {
        let quotas: Vec<&[Quota]> = self.settings.dimensions.iter().map(|(_, quotas)| quotas.as_slice()).collect();
        snapshot.check_quotas(&quotas)?;
        let fingerprinter = snapshot.fingerprinter(self.fingerprinter)?;
        let limiter = Self { fingerprinter, ..self }.build()?;
        snapshot.restore(&limiter.table, elapsed, &limiter.clock)?;
        Ok(limiter)
    }
}

/// Whether a limiter of these dimensions can be made: as many as its type names, each with a name of its own.
fn check_dimensions<'a, D: Dimensions + ?Sized>(names: impl Iterator<Item = &'a str>) -> Result<(), BuildError> {
    let names: Vec<&str> = names.collect();
    let (given, most) = (names.len(), MAX_DIMENSIONS);
    if !(1..=most).contains(&given) {
        return Err(BuildError::DimensionCount { dimensions: given, most });
    }
    if let Some(named) = D::COUNT.filter(|&named| named != given) {
        return Err(BuildError::OtherDimensionCount { given, named });
    }
    for (second, name) in names.iter().enumerate() {
        if name.trim().is_empty() {
            return Err(BuildError::EmptyDimensionName { dimension: second });
        }
        if let Some(first) = names[..second].iter().position(|other| other == name) {
            return Err(BuildError::RepeatedDimensionName { first, second });
        }
    }
    Ok(())
}
