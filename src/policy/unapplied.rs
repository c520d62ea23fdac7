//! [`Unapplied`]: the fields of a policy that a limiter in use can't take on.

use core::fmt;

use super::model::Policy;
use crate::caps::AtKeyCap;
use crate::clock::Clock;
use crate::engine::AtCap;
use crate::fingerprint::Fingerprinter;
use crate::joint::JointLimiter;
use crate::keys::Dimensions;
use crate::texts::texts;

/// The fields of a policy that [`Policy::apply`] did not apply: the limiter was built with other
/// values, and keeps them.
///
/// To apply them, build a new limiter from the policy. A `key_cap` or `at_key_cap` that the policy
/// does not have is left to the program, and is not listed.
///
/// ```
/// use tollgate::policy::{Policy, UnappliedField};
///
/// let policy = |head: &str| {
///     Policy::from_toml(&format!("{head}\n[[dimension]]\nname = \"user\"\nquota = [{{ limit = 5, per = \"1m\" }}]"))
/// };
/// let limiter = policy("shadow = true")?.builder::<(String,)>().build()?;
/// // The limit is to be enforced.
/// let unapplied = policy("")?.apply(&limiter)?;
/// assert!(!unapplied.is_empty());
/// assert_eq!(unapplied.fields(), [UnappliedField::Shadow]);
/// assert_eq!(unapplied.to_string(), "not applied: `shadow`; build a new limiter");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the limiter keeps the values of these fields that it was built with"]
pub struct Unapplied {
    fields: Vec<UnappliedField>,
}

/// A field in [`Unapplied`].
///
/// ```
/// use tollgate::policy::{Policy, UnappliedField};
///
/// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]\n";
/// let limiter = Policy::from_toml(text)?.builder::<(String,)>().build()?;
/// let text = format!("{text}penalty = {{ denials = 3, within = \"1m\", blocked_for = \"1h\" }}");
/// let unapplied = Policy::from_toml(&text)?.apply(&limiter)?;
/// assert_eq!(unapplied.fields(), [UnappliedField::Penalty { dimension: "user".to_owned() }]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnappliedField {
    /// The key cap.
    KeyCap,
    /// The answer to a new key at the cap.
    AtKeyCap,
    /// Shadow mode.
    Shadow,
    /// The penalty of a dimension: other numbers, a new one, or none in place of one.
    Penalty {
        /// The name of the dimension.
        dimension: String,
    },
}

impl Unapplied {
    /// The fields in which a policy differs from a limiter of the same dimensions.
    pub(super) fn of<D, C, F>(policy: &Policy, limiter: &JointLimiter<D, C, F>) -> Self
    where
        D: Dimensions + ?Sized,
        C: Clock,
        F: Fingerprinter,
    {
        let engine = &limiter.engine;
        let modes = engine.modes.as_deref();
        let at_key_cap = if let AtCap::Admit = engine.at_cap { AtKeyCap::Admit } else { AtKeyCap::Deny };
        let of_limiter = [
            (policy.key_cap.is_some_and(|key_cap| key_cap != engine.table.cells.key_cap()), UnappliedField::KeyCap),
            (policy.at_key_cap.is_some_and(|wanted| wanted != at_key_cap), UnappliedField::AtKeyCap),
            (
                policy.shadow.unwrap_or_default() != modes.is_some_and(|modes| modes.shadow.is_some()),
                UnappliedField::Shadow,
            ),
        ];
        let of_dimensions = limiter.dimensions().enumerate().filter_map(|(at, (name, _))| {
            let wanted = policy.dimensions.iter().find(|dimension| *dimension.name == *name)?.penalty;
            let penalty = UnappliedField::Penalty { dimension: name.to_owned() };
            Some((wanted != modes.and_then(|modes| modes.penalty_of(at)), penalty))
        });
        let differs = of_limiter.into_iter().chain(of_dimensions).filter(|(differs, _)| *differs);
        Self { fields: differs.map(|(_, field)| field).collect() }
    }

    /// Whether the whole policy was applied.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The fields, in the order of the file. Penalties are in the order of the limiter's dimensions.
    #[must_use]
    pub fn fields(&self) -> &[UnappliedField] {
        &self.fields
    }
}

impl fmt::Display for Unapplied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("all applied");
        }
        f.write_str("not applied: ")?;
        for (at, field) in self.fields.iter().enumerate() {
            write!(f, "{}{field}", if at == 0 { "" } else { ", " })?;
        }
        f.write_str("; build a new limiter")
    }
}

texts! { UnappliedField {
    KeyCap => "`key_cap`";
    AtKeyCap => "`at_key_cap`";
    Shadow => "`shadow`";
    Penalty { dimension } => "`penalty` of dimension {dimension:?}";
} }
