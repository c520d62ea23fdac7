//! What the fuzz target `snapshot` does: bytes as a snapshot, as its contents, or as damage to a
//! good one. Whatever they are, nothing panics: they are refused with a reason, or they are a
//! snapshot that is the same when it is written and read again, and the limiters that are made of
//! it keep to their quotas.

use std::time::Duration;

use siphasher::sip128::SipHasher13;
use tollgate::{
    Absent, Algorithm, JointLimiter, Limiter, MockClock, Penalty, Quota, RestoreError, SipFingerprinter, Snapshot,
    Status,
};

/// What became of one input.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// An empty input.
    Nothing,
    Refused,
    /// A snapshot that no limiter could be made from.
    Snapshot,
    Restored,
}

const SECOND: Duration = Duration::from_secs(1);
const KEYS: u32 = 6;
/// "tollgate", the version, the length, the checksum.
const HEAD: usize = 8 + 4 + 8 + 16;

/// A limiter of each kind. The last two are a limiter in two dimensions, this quota and the one
/// before it.
fn quotas() -> [Quota; 8] {
    [
        Quota::new(3, 10 * SECOND),
        Quota::new(1, SECOND),
        Quota::token_bucket(7, 3, SECOND),
        Quota::token_bucket(7, 3, SECOND).starting_with(2),
        Quota::leaky_queue(2, SECOND, 2 * SECOND),
        Quota::fixed_window(5, SECOND),
        Quota::sliding_counter(5, SECOND),
        Quota::leaky_bucket(5, 1, SECOND),
    ]
}

/// A quota of the same algorithm, for one key.
fn own(quota: Quota) -> Quota {
    match quota.algorithm() {
        Algorithm::TokenBucket => Quota::token_bucket(9, 3, SECOND),
        Algorithm::LeakyBucket => Quota::leaky_bucket(8, 1, SECOND),
        Algorithm::LeakyQueue => Quota::leaky_queue(3, SECOND, 2 * SECOND),
        Algorithm::FixedWindow => Quota::fixed_window(8, SECOND),
        Algorithm::SlidingCounter => Quota::sliding_counter(8, SECOND),
        _ => Quota::new(5, 20 * SECOND).named("own"),
    }
}

fn penalty() -> Penalty {
    Penalty::new(2, 10 * SECOND, 20 * SECOND).growing(2, 60 * SECOND, 30 * SECOND)
}

fn clock() -> MockClock {
    let clock = MockClock::new();
    clock.set(1 << 40);
    clock
}

fn limiter(quota: Quota, clock: &MockClock) -> tollgate::LimiterBuilder<u32, MockClock, SipFingerprinter> {
    Limiter::builder(quota)
        .key_cap(64)
        .keys_with_quotas(4)
        .penalty(penalty())
        .clock(clock.clone())
        .fingerprinter(SipFingerprinter::with_seed(1, 2))
}

fn joint(clock: &MockClock) -> tollgate::JointLimiterBuilder<(u32, u32), MockClock, SipFingerprinter> {
    let [log, .., bucket] = quotas();
    JointLimiter::<(u32, u32)>::builder()
        .dimension("one", [log])
        .dimension("two", [bucket])
        .penalty(1, penalty())
        .key_cap(64)
        .keys_with_quotas(4)
        .clock(clock.clone())
        .fingerprinter(SipFingerprinter::with_seed(1, 2))
}

/// The snapshot of a limiter with such quotas that has been in use; of two dimensions past the last
/// of them. Always the same bytes.
pub fn good(which: usize) -> Vec<u8> {
    let mut contents = taken(which).split_off(HEAD);
    // The time on the wall comes first: some day in 2024.
    contents[..9].copy_from_slice(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x18]);
    framed(&contents, VERSION)
}

fn taken(which: usize) -> Vec<u8> {
    let clock = clock();
    let Some(&quota) = quotas().get(which) else {
        let limiter = joint(&clock).build().expect("good quotas");
        limiter.set_quotas_of((Absent, 1), &[own(quotas()[7])]).expect("of the same algorithm");
        for key in 0..KEYS {
            let _ = limiter.try_acquire_n((&key, &(key / 2)), 1);
            clock.advance(SECOND / 4);
        }
        return limiter.snapshot().to_bytes();
    };
    let limiter = limiter(quota, &clock).build().expect("a good quota");
    limiter.set_quotas_of(1, &[own(quota)]).expect("of the same algorithm");
    for key in (0..KEYS).chain(0..KEYS / 2) {
        let _ = limiter.try_acquire_n(key, (1 + key % 3).min(quota.limit()));
        clock.advance(SECOND / 4);
    }
    limiter.snapshot().to_bytes()
}

/// The present version of the format.
const VERSION: u32 = 1;

/// Contents with the head that they have to have.
fn framed(contents: &[u8], version: u32) -> Vec<u8> {
    let mut bytes = Vec::from(b"tollgate");
    bytes.extend(version.to_le_bytes());
    bytes.extend((contents.len() as u64).to_le_bytes());
    bytes.extend(SipHasher13::new().hash(contents).as_bytes());
    bytes.extend(contents);
    bytes
}

/// Changes bytes, as told by five others at a time: what to do, where, how far, and with what.
fn damage(mut bytes: Vec<u8>, told: &[u8]) -> Vec<u8> {
    for told in told.chunks_exact(5).take(16) {
        let [what, high, low, length, by] = *told else { continue };
        let at = usize::from(u16::from_be_bytes([high, low])) % (bytes.len() + 1);
        let end = (at + usize::from(length)).min(bytes.len());
        match what % 5 {
            0 => bytes.truncate(at),
            1 => bytes[at..end].iter_mut().take(1).for_each(|byte| *byte ^= by),
            2 => bytes[at..end].iter_mut().take(8).for_each(|byte| *byte = by),
            3 => drop(bytes.splice(at..at, std::iter::repeat_n(by, usize::from(length % 16)))),
            _ => {
                // A part of another one.
                let other = good(usize::from(by));
                let part = other[at.min(other.len())..end.min(other.len())].to_vec();
                drop(bytes.splice(at..end, part));
            }
        }
    }
    bytes
}

/// Plays the input, whose first byte says what the rest is. An error says what is not as it must
/// be.
pub fn read(input: &[u8]) -> Result<Read, String> {
    let Some((&what, rest)) = input.split_first() else { return Ok(Read::Nothing) };
    let which = usize::from(what >> 2);
    let bytes = match what & 3 {
        0 => rest.to_vec(),
        1 => framed(rest, VERSION),
        2 => {
            let good = good(which);
            let damaged = damage(good.clone(), rest);
            // The parts of others may come to the whole of another.
            let is_good = |bytes: &[u8]| (0..=quotas().len()).any(|which| bytes == self::good(which));
            if Snapshot::from_bytes(&damaged).is_ok() && damaged != good && !is_good(&damaged) {
                return Err("a snapshot is damaged, and nobody notices".to_owned());
            }
            damaged
        }
        _ => framed(&damage(good(which).split_off(HEAD), rest), VERSION),
    };
    let snapshot = match Snapshot::from_bytes(&bytes) {
        Ok(snapshot) => snapshot,
        Err(error) if error.to_string().is_empty() => return Err(format!("an error without a reason: {error:?}")),
        Err(_) => return Ok(Read::Refused),
    };
    let written = snapshot.to_bytes();
    match Snapshot::from_bytes(&written) {
        Ok(again) if again.to_bytes() == written && again.len() == snapshot.len() => {}
        other => return Err(format!("{snapshot:?} is written as\n{written:?}\nand that is read as {other:?}")),
    }
    let _ = snapshot.age();
    let mut restored = restores_joint(&snapshot)?;
    for quota in quotas() {
        restored |= restores(&snapshot, quota).map_err(|difference| format!("{quota:?}: {difference}"))?;
    }
    Ok(if restored { Read::Restored } else { Read::Snapshot })
}

fn is_refused(error: &RestoreError) -> Result<bool, String> {
    match error {
        RestoreError::Build(error) => Err(format!("good quotas can't be built: {error}")),
        error if error.to_string().is_empty() => Err(format!("an error without a reason: {error:?}")),
        _ => Ok(false),
    }
}

fn told(status: Status) -> (bool, u32, Option<Duration>, Duration) {
    (status.is_admitted(), status.remaining(), status.retry_after(), status.reset_after())
}

/// Whether a limiter with this quota can be made from it. If so, one that is made from its own
/// snapshot says the same, and neither admits more than the quota.
fn restores(snapshot: &Snapshot, quota: Quota) -> Result<bool, String> {
    let clock = clock();
    let first = match limiter(quota, &clock).restore_after(snapshot, SECOND / 8) {
        Ok(limiter) => limiter,
        Err(error) => return is_refused(&error),
    };
    let second = limiter(quota, &clock)
        .restore_after(&first.snapshot(), Duration::ZERO)
        .map_err(|error| format!("its own snapshot is refused: {error}"))?;
    for key in 0..KEYS + 2 {
        let (one, other) = (told(first.peek(key)), told(second.peek(key)));
        if one != other {
            return Err(format!("key {key} is told {one:?}, and once more restored {other:?}"));
        }
        // Its own, or those of all.
        let quotas = second.quotas_of(key);
        let limit = quotas[0].limit().min(1000);
        let mut in_window = 0;
        // Half a window apart, both within one.
        for pause in [Duration::ZERO, quotas[0].window() / 2] {
            clock.advance(pause);
            let granted = (0..=limit).filter(|_| second.try_acquire(key).is_admitted()).count();
            if granted > quotas[0].limit() as usize {
                return Err(format!("key {key} is granted {granted} permits at once"));
            }
            in_window += granted;
        }
        let is_log = quota.algorithm() == Algorithm::SlidingWindowLog;
        if is_log && limit < 1000 && in_window > limit as usize {
            return Err(format!("key {key} is granted {in_window} permits in one window"));
        }
        second.forget(key);
        if key % 2 == 0 && *quotas == [quota] && !second.try_acquire(key).is_admitted() {
            return Err(format!("key {key} is denied when it is forgotten"));
        }
    }
    Ok(true)
}

fn restores_joint(snapshot: &Snapshot) -> Result<bool, String> {
    let limiter = match joint(&clock()).restore_after(snapshot, SECOND / 8) {
        Ok(limiter) => limiter,
        Err(error) => return is_refused(&error),
    };
    for key in 0..KEYS {
        let keys = (&key, &(key / 2));
        let quotas = limiter.quotas_of(keys).map_err(|error| error.to_string())?;
        let [Some([log, ..]), Some([bucket, ..])] = [0, 1].map(|at| quotas.get(at)?.as_deref()) else {
            return Err(format!("{keys:?}: {quotas:?}"));
        };
        let all =
            |keys: (Option<&u32>, Option<&u32>)| limiter.try_acquire(keys).is_ok_and(|decision| decision.is_admitted());
        let both = (0..10).filter(|_| all((Some(keys.0), Some(keys.1)))).count();
        let first = both + (0..10).filter(|_| all((Some(keys.0), None))).count();
        let second = both + (0..10).filter(|_| all((None, Some(keys.1)))).count();
        if first > log.limit() as usize || second > bucket.limit() as usize {
            return Err(format!("keys {keys:?} are granted {first} and {second} permits at once"));
        }
    }
    Ok(true)
}
