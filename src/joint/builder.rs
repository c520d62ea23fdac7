//! [`JointLimiterBuilder`]: the dimensions of a limiter, and everything else about it.

use core::marker::PhantomData;

use super::limiter::JointLimiter;
use crate::caps::{AtKeyCap, MAX_DIMENSIONS};
use crate::clock::{Clock, MonotonicClock};
#[cfg(doc)]
use crate::counts::Counts;
#[cfg(doc)]
use crate::decision::Admission;
use crate::engine::Settings;
use crate::error::BuildError;
use crate::fingerprint::{DefaultFingerprinter, Fingerprinter};
use crate::keys::Dimensions;
use crate::penalty::Penalty;
use crate::quota::Quota;
use crate::quotas::Quotas;
#[cfg(feature = "serde")]
use crate::snapshot::{RestoreError, Snapshot};

/// Makes a [`JointLimiter`]. Start from [`JointLimiter::builder`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct JointLimiterBuilder<D: ?Sized, C = MonotonicClock, F = DefaultFingerprinter> {
    dimensions: Vec<(Box<str>, Vec<Quota>)>,
    settings: Settings,
    clock: C,
    fingerprinter: F,
    keys: PhantomData<fn(&D)>,
}

impl<D: Dimensions + ?Sized> JointLimiter<D> {
    /// Starts a limiter, to which the dimensions are added in the order in which `D` names their
    /// keys.
    pub fn builder() -> JointLimiterBuilder<D> {
        let (dimensions, settings) = (Vec::new(), Settings::default());
        let (clock, fingerprinter) = (MonotonicClock::new(), DefaultFingerprinter::new());
        JointLimiterBuilder { dimensions, settings, clock, fingerprinter, keys: PhantomData }
    }
}

impl<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter> JointLimiterBuilder<D, C, F> {
    /// One more dimension, with the quotas that each of its keys has: one, or several sliding
    /// window logs. Its name, which no other dimension has, is for messages.
    pub fn dimension(mut self, name: impl Into<Box<str>>, quotas: impl IntoIterator<Item = Quota>) -> Self {
        self.dimensions.push((name.into(), quotas.into_iter().collect()));
        self
    }

    /// The most keys held at once, of all dimensions together; 1,048,576 unless said.
    pub fn key_cap(mut self, key_cap: usize) -> Self {
        self.settings.key_cap = key_cap;
        self
    }

    /// What a request with a new key is told at the cap: [`AtKeyCap::Deny`] unless said. With
    /// [`AtKeyCap::Admit`] the key is passed over and the others are asked; [`AtKeyCap::Share`] is
    /// not possible here.
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

    /// Whether to admit what would be denied, and tell so ([`Admission::overruled`],
    /// [`Counts::overruled`]); not unless said. As
    /// [`LimiterBuilder::shadow`](crate::LimiterBuilder::shadow).
    pub fn shadow(mut self, shadow: bool) -> Self {
        self.settings.modes.shadow = shadow;
        self
    }

    /// Keys of this dimension that are denied too often are blocked for a while; none unless said.
    /// Dimensions are counted from zero, in the order in which they were added. [`Penalty`] says
    /// what counts and what it costs, with what follows for several dimensions:
    ///
    /// - A request that is denied counts for each of its keys whose own quota is in the way
    ///   ([`Denial::violated`](crate::Denial::violated)), and for no other.
    /// - A request with a key that is blocked is denied; it counts for none of its keys.
    /// - The denial tells the longest of all waits, and of the dimension that decides it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{DenialReason, JointLimiter, MockClock, Penalty, Quota};
    ///
    /// let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    /// let limiter = JointLimiter::<(String, String)>::builder()
    ///     .dimension("user", [Quota::per_second(1)])
    ///     .dimension("endpoint", [Quota::per_second(100)])
    ///     .penalty(0, Penalty::new(1, minute, minute))
    ///     .clock(MockClock::new())
    ///     .build()?;
    /// assert!(limiter.try_acquire(("mallory", "/login"))?.is_admitted());
    /// let denial = limiter.try_acquire(("mallory", "/login"))?.into_result().unwrap_err();
    /// assert_eq!((denial.reason(), denial.retry_after()), (DenialReason::Penalty, minute));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn penalty(mut self, dimension: usize, penalty: Penalty) -> Self {
        self.settings.modes.penalties.push((dimension, penalty));
        self
    }

    /// Makes the limiter one with lists, of keys that are always admitted and keys that never are,
    /// with room for so many listed keys (of both lists and all dimensions together); without lists
    /// unless said. As [`LimiterBuilder::list_cap`](crate::LimiterBuilder::list_cap); see
    /// [`JointLimiter::allow`], [`JointLimiter::deny`].
    pub fn list_cap(mut self, list_cap: usize) -> Self {
        self.settings.modes.list_cap = Some(list_cap);
        self
    }

    /// How many keys of each dimension may come to have [quotas of their
    /// own](JointLimiter::set_quotas_of); none unless said. As
    /// [`LimiterBuilder::keys_with_quotas`](crate::LimiterBuilder::keys_with_quotas).
    pub fn keys_with_quotas(mut self, keys_with_quotas: usize) -> Self {
        self.settings.keys_with_quotas = keys_with_quotas;
        self
    }

    /// The clock; [`MonotonicClock`] unless said.
    pub fn clock<T: Clock>(self, clock: T) -> JointLimiterBuilder<D, T, F> {
        let Self { dimensions, settings, fingerprinter, keys, .. } = self;
        JointLimiterBuilder { dimensions, settings, clock, fingerprinter, keys }
    }

    /// Another way to make fingerprints, in place of [`DefaultFingerprinter`].
    pub fn fingerprinter<G: Fingerprinter>(self, fingerprinter: G) -> JointLimiterBuilder<D, C, G> {
        let Self { dimensions, settings, clock, keys, .. } = self;
        JointLimiterBuilder { dimensions, settings, clock, fingerprinter, keys }
    }

    /// The limiter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when there is no dimension, more than [`MAX_DIMENSIONS`], or not as many as
    /// `D` names, a name is empty or given twice, a quota or a penalty can't be used, a penalty is
    /// for a dimension that there is not or has none to share its key with, the cap is zero or too
    /// large or less than the keys expected, or [`AtKeyCap::Share`] was asked for.
    pub fn build(self) -> Result<JointLimiter<D, C, F>, BuildError> {
        let Self { dimensions, settings, clock, fingerprinter, .. } = self;
        let (names, quotas): (Vec<_>, Vec<_>) = dimensions.into_iter().unzip();
        check_dimensions::<D>(&names)?;
        let quotas = quotas.iter().map(|quotas| Quotas::new(quotas)).collect::<Result<Vec<_>, BuildError>>()?;
        Ok(JointLimiter::of(settings.joint(&quotas, clock, fingerprinter)?, names.into()))
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
        let quotas: Vec<&[Quota]> = self.dimensions.iter().map(|(_, quotas)| quotas.as_slice()).collect();
        snapshot.check_quotas(&quotas)?;
        let fingerprinter = snapshot.fingerprinter(self.fingerprinter)?;
        let limiter = Self { fingerprinter, ..self }.build()?;
        limiter.engine.put_back(snapshot, elapsed)?;
        Ok(limiter)
    }
}

/// Whether a limiter of these dimensions can be made: as many as its type names, each with a name
/// of its own.
fn check_dimensions<D: Dimensions + ?Sized>(names: &[Box<str>]) -> Result<(), BuildError> {
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
