//! What this crate's own tests use. Nothing here is part of the interface.

use crate::script::{Scripted, TEXT, TIME};
use crate::store::StoreBuilder;

/// A store whose script reads its time, in microseconds, from a key of the server.
///
/// # Panics
///
/// If the script does not read its clock exactly once.
pub fn with_time_from(builder: StoreBuilder, key: &str) -> StoreBuilder {
    let other = format!("{{ 0, redis.call('GET', '{key}') }}");
    assert!(TEXT.matches(TIME).count() == 1, "the script reads its clock once");
    builder.script(Scripted::of(TEXT.replace(TIME, &other)))
}
