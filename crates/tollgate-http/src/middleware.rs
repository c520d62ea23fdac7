//! The common part of rate-limiting middleware for web frameworks. The crates for tower and
//! actix-web are built on it.
//!
//! [`Framework`] has the head of a request in the types of a framework, and [`Middleware`] its own
//! answers. Over them, [`Shared`] judges a request: an [`Extractor`] finds the key, [`Gate`] those of
//! a limiter, and [`Limits`] is asked with them. The outcome has no types of a framework. An admitted
//! request has a [`Charge`], which is settled when the response is there. A denied request has the
//! parts of its answer.
//!
//! ```
//! use std::sync::Arc;
//! use bytes::Bytes;
//! use tollgate::{Limiter, Quota};
//! use tollgate_http::middleware::{Limits, Options, Outcome, Told};
//!
//! let limiter = Arc::new(Limiter::<&str>::new(Quota::per_minute(1))?);
//! // `Bytes` stands for the value of a header field, as a framework has it.
//! let limits = Limits::<_, Bytes>::new(limiter, Options::default());
//!
//! let Outcome::Admitted(Some(charge)) = limits.decide("alice", 1) else { panic!("the first") };
//! let told = Told::Draft11 {
//!     policies: Some(r#""default";q=1;w=60"#.into()),
//!     limit: Some(r#""default";r=0;t=60"#.into()),
//! };
//! assert_eq!(charge.told(), Some(told));
//!
//! let Outcome::Denied(denied) = limits.decide("alice", 1) else { panic!("the second") };
//! assert_eq!(denied.answer(|problem, _| problem.status()), 429);
//! # Ok::<(), tollgate::BuildError>(())
//! ```

mod adapter;
mod admitted;
mod around;
mod by_dimension;
mod cache;
mod charge;
mod each_tuple;
mod faces;
mod fields;
mod find;
mod gate;
mod in_flight;
mod inner;
mod key;
mod key_error;
mod limits;
mod missing;
mod notice;
mod path;
#[cfg(feature = "redis")]
mod policy_limiter;
mod prepared;
#[expect(missing_debug_implementations, reason = "they are parts of a middleware, which has a text")]
mod request_charge;
#[expect(missing_debug_implementations, reason = "they are parts of a middleware, which has a text")]
mod settings;
mod shadow;
#[expect(missing_debug_implementations, reason = "they are parts of a middleware, which has a text")]
mod shared;
mod told;
mod values;
#[cfg(feature = "wait")]
mod waits;

pub use adapter::Middleware;
pub use admitted::Admitted;
pub use around::Around;
pub use by_dimension::{ByDimension, Ruling};
pub use charge::Charge;
pub use fields::{write_denied, write_no_store, write_told};
pub use find::Gate;
pub use gate::joint::JointKey;
pub use gate::{AskedWith, AtOnce};
pub use in_flight::RequestInFlight;
pub use inner::Options;
#[cfg(feature = "policy")]
pub use key::PolicyKey;
pub use key::extractors::{self, *};
pub use key::{CLIENT_IN_WORDS, ClientIp, Extractor, Extracts, Framework, HasExtension, Header};
pub use key_error::KeyError;
pub use limits::{Denied, Limits, Outcome, OutcomeLater};
pub use missing::Missing;
pub use notice::Notice;
pub use request_charge::RequestCharge;
pub use settings::{OnAnswer, Settings};
pub use shadow::ShadowSwitch;
pub use shared::{InLine, Judgement, Settled, Shared};
pub use told::Told;
#[cfg(feature = "redis")]
pub use tollgate_redis::{AcquireError, PolicyLimiter, StoreKey, StoreKeys};
pub use values::{FieldValue, bytes_of, digits_of};
#[cfg(feature = "wait")]
pub use waits::Waits;
