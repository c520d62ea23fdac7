//! The quotas of a dimension, as the script takes them.

use core::cmp::Reverse;
use core::ops::Range;
use core::time::Duration;
use std::sync::Arc;

use tollgate::schema::Field;
use tollgate::{Algorithm, Calendar, JointLimiter, Quota, Zone};

use crate::asked::Asked;
use crate::error::BuildError;
use crate::names::Names;
use crate::script::Argument;

/// The quotas of a dimension, or of a tier of one.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    /// The name of the dimension.
    pub(crate) name: String,
    pub(crate) tier: Option<Tier>,
    pub(crate) quotas: Vec<Quota>,
}

/// A tier of a dimension.
#[derive(Debug, Clone)]
pub(crate) struct Tier {
    /// The place of the dimension.
    pub(crate) dimension: usize,
    /// The place of the tier among those of the dimension.
    pub(crate) place: usize,
    pub(crate) name: String,
}

/// A dimension or a tier of one: its name, its quotas, and what the script is told of them. Those of
/// tiers come after all dimensions.
#[derive(Debug, Clone)]
pub(crate) struct Dimension {
    pub(crate) name: String,
    pub(crate) tier: Option<Tier>,
    /// The place of the dimension, which answers name.
    pub(crate) told: usize,
    pub(crate) quotas: Arc<[Quota]>,
    pub(crate) names: Names,
    /// The kind of value, and its numbers.
    arguments: Vec<Argument>,
    /// The windows of the calendar, if the quota has such.
    calendar: Option<(Calendar, Zone)>,
    /// The places of the quotas in the order in which the script has them. Of quotas with the same
    /// wait the first decides. So those with most permits are first, and those that another implies
    /// are last.
    pub(crate) order: Vec<usize>,
    /// The most permits that a request can be granted.
    pub(crate) least: u32,
    /// Whether it counts requests in flight: a concurrency limit is the only quota of its keys.
    pub(crate) counts_requests: bool,
}

/// What all dimensions of a limiter have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) tag: Option<&'a str>,
}

/// The quotas of dimensions and their tiers, checked as they are in process.
pub(crate) fn plan(given: Vec<Given>, shared: Shared<'_>) -> Result<Vec<Dimension>, BuildError> {
    let mut builder = JointLimiter::<[u64]>::builder();
    for Given { name, tier, quotas } in &given {
        let quotas = quotas.iter().copied();
        builder = match tier {
            None => builder.dimension(name.as_str(), quotas),
            Some(tier) => builder.tier(tier.dimension, tier.name.as_str(), quotas),
        };
    }
    builder.build()?;
    given.into_iter().enumerate().map(|(place, given)| Dimension::new(place, given, shared)).collect()
}

impl Dimension {
    /// The one of those asked that answers name by this place of a dimension.
    pub(crate) fn told<'a>(all: &'a [Self], asked: &[Asked], dimension: usize) -> Option<&'a Self> {
        asked.iter().map(|&(place, _)| &all[place]).find(|it| it.told == dimension)
    }

    fn new(place: usize, given: Given, shared: Shared<'_>) -> Result<Self, BuildError> {
        let Given { name, tier, quotas } = given;
        let told = tier.as_ref().map_or(place, |tier| tier.dimension);
        let mut order: Vec<usize> = (0..quotas.len()).collect();
        order.sort_by_key(|&place| (is_implied(&quotas[place], &quotas), Reverse(quotas[place].limit())));
        let in_order: Vec<Quota> = order.iter().map(|&place| quotas[place]).collect();
        let Layout { kind, parameters, numbers, calendar } = Layout::of(&in_order)?;
        let mut arguments = vec![Argument::Word(kind)];
        arguments.extend(numbers.into_iter().map(Argument::Number));
        let mut words: Vec<String> = parameters.iter().map(u64::to_string).collect();
        words.extend(calendar.iter().flat_map(|(per, zone)| [per.to_string(), zone.to_string()]));
        let names = Names::new(shared.prefix, &format!("{kind}{}", words.join(".")), shared.tag);
        let counts_requests = quotas.iter().any(|quota| quota.algorithm() == Algorithm::Concurrency);
        // A request of any cost is one.
        let least = if counts_requests { u32::MAX } else { quotas.iter().map(Quota::limit).min().unwrap_or(0) };
        Ok(Self { name, tier, told, quotas: quotas.into(), names, arguments, calendar, order, least, counts_requests })
    }

    /// What the script is told of the quotas, by this process's time since 1970, and of a request that
    /// enters by this number.
    pub(crate) fn arguments(&self, since_1970: Duration, enters: Option<u128>) -> impl Iterator<Item = Argument> {
        let windows = self.calendar.map(|(per, zone)| windows(per, zone, since_1970));
        let micros = |time: Duration| Argument::Number(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        let entry = self.counts_requests.then(|| halves(enters.unwrap_or(0)).map(Argument::Number));
        let windows = windows.into_iter().flatten().map(micros);
        self.arguments.iter().copied().chain(windows).chain(entry.into_iter().flatten())
    }
}

/// A number as the script has it, which knows none so large.
#[expect(clippy::cast_possible_truncation, reason = "halves")]
pub(crate) const fn halves(number: u128) -> [u64; 2] {
    [(number >> 64) as u64, number as u64]
}

/// The starts of the window of the calendar that a time lies in, of the one before it and of the one
/// after it, and the end of that.
fn windows(per: Calendar, zone: Zone, since_1970: Duration) -> [Duration; 4] {
    let Range { start, end } = per.window(zone, since_1970);
    let before = per.window(zone, start.saturating_sub(Duration::from_nanos(1)));
    [before.start, start, end, per.window(zone, end).end]
}

/// The fields that the script decides by. A quota with another one is not kept.
const KEPT: [Field; 11] = [
    Field::Limit,
    Field::Capacity,
    Field::Refill,
    Field::Leak,
    Field::Per,
    Field::MaxDelay,
    Field::MaxHold,
    Field::Resolution,
    Field::Start,
    Field::Phase,
    Field::Zone,
];

/// The kind of value that quotas have on the server.
struct Layout {
    kind: &'static str,
    /// The numbers without which a value means nothing. They are in the name of the key, so a value
    /// is never read by other numbers. Limits are not among them: a changed limit goes on with the
    /// permits that were granted. Stamps of a log mean the same under all quotas.
    parameters: Vec<u64>,
    /// What the script is told.
    numbers: Vec<u64>,
    /// The windows of the calendar. They are in the name of the key, too, and the script is told of
    /// those that are near.
    calendar: Option<(Calendar, Zone)>,
}

impl Layout {
    fn new(kind: &'static str, parameters: Vec<u64>, numbers: Vec<u64>) -> Self {
        Self { kind, parameters, numbers, calendar: None }
    }

    fn of(quotas: &[Quota]) -> Result<Self, BuildError> {
        if let Some(quota) = quotas.iter().find(|quota| quota.fields().any(|(field, _)| !KEPT.contains(&field))) {
            return Err(BuildError::NotKept { quota: Box::new(*quota) });
        }
        let quota = &quotas[0];
        let limit = u64::from(quota.limit());
        let window = |time: Duration| micros(time, quota);
        match quota.algorithm() {
            Algorithm::SlidingWindowLog => Self::of_logs(quotas),
            Algorithm::TokenBucket | Algorithm::LeakyBucket => {
                let rate = Rate::of(quota)?;
                let lacks = quota.start().map_or(0, |start| limit.saturating_sub(start.into()));
                let numbers = vec![limit, rate.permits, rate.period, rate.stride, rate.stride_time, lacks];
                Ok(Self::new("B", vec![limit, rate.permits, rate.period], numbers))
            }
            Algorithm::LeakyQueue => {
                let (rate, longest) = (Rate::of(quota)?, window(quota.max_delay().unwrap_or_default())?);
                let numbers = vec![limit, rate.permits, rate.period, rate.stride, rate.stride_time, longest];
                Ok(Self::new("Q", vec![rate.permits, rate.period], numbers))
            }
            Algorithm::FixedWindow if quota.calendar_window().is_some() => {
                Ok(Self { calendar: quota.calendar_window(), ..Self::new("M", vec![], vec![limit]) })
            }
            Algorithm::FixedWindow => {
                let length = window(quota.window())?;
                let first = quota.phase().map(window).transpose()?.map(|phase| phase % length);
                let numbers = vec![limit, length, first.is_some().into(), first.unwrap_or(0)];
                Ok(Self::new("F", [length].into_iter().chain(first).collect(), numbers))
            }
            Algorithm::SlidingCounter => {
                let length = window(quota.window() / 2)?;
                let first = window(quota.phase().unwrap_or_default())? % length;
                exact(3 * u128::from(limit) * u128::from(length), quota)?;
                Ok(Self::new("C", vec![length, first], vec![limit, length, first]))
            }
            Algorithm::QuantisedLog => {
                let resolution = quota.resolution().unwrap_or_default();
                let (step, length) = (window(resolution)?, window(quota.window() - resolution)?);
                Ok(Self::new("S", vec![length, step], vec![limit, length, step]))
            }
            Algorithm::Concurrency => {
                let hold = window(quota.max_hold().unwrap_or_default())?;
                Ok(Self::new("P", vec![hold], vec![limit, hold]))
            }
            _ => Err(BuildError::NotKept { quota: Box::new(*quota) }),
        }
    }

    fn of_logs(quotas: &[Quota]) -> Result<Self, BuildError> {
        let mut numbers = vec![quotas.len() as u64];
        for quota in quotas {
            numbers.extend([quota.limit().into(), micros(quota.window(), quota)?]);
        }
        Ok(Self::new("L", vec![], numbers))
    }
}

/// So many permits every so many microseconds, in lowest terms, and a stride of permits that flow in
/// a whole number of microseconds.
struct Rate {
    permits: u64,
    period: u64,
    stride: u64,
    stride_time: u64,
}

impl Rate {
    /// The fewest permits of a stride, if such a stride can be computed exactly. A bucket that is
    /// never full forgets its receipts whenever a stride has flowed in.
    const LONG: u64 = 1 << 18;

    fn of(quota: &Quota) -> Result<Self, BuildError> {
        let (permits, per) = quota.rate().unwrap_or_default();
        // Per microsecond, that is a thousand times as many permits in as many nanoseconds.
        let (permits, period) = (u64::from(permits) * 1_000, u64::try_from(per.as_nanos()).unwrap_or(u64::MAX));
        let divisor = greatest_common_divisor(permits, period).max(1);
        let (permits, period) = (permits / divisor, period / divisor);
        let limit = u64::from(quota.limit());
        let of = |least: u64| -> Result<Self, BuildError> {
            let repeats = least.div_ceil(permits.max(1));
            let (stride, longest) = (u128::from(repeats) * u128::from(permits), 4 * u128::from(limit));
            exact((stride + longest) * u128::from(period) + 2 * u128::from(permits), quota)?;
            Ok(Self { permits, period, stride: repeats * permits, stride_time: repeats * period })
        };
        of(limit.max(Self::LONG)).or_else(|_| of(limit))
    }
}

/// Euclid's algorithm.
fn greatest_common_divisor(mut greater: u64, mut less: u64) -> u64 {
    while less != 0 {
        (greater, less) = (less, greater % less);
    }
    greater
}

/// Whether the server, which computes with doubles, has a number exactly.
fn exact(number: u128, quota: &Quota) -> Result<(), BuildError> {
    if number < 1 << 53 { Ok(()) } else { Err(BuildError::TooLarge { quota: Box::new(*quota) }) }
}

/// A time in whole microseconds.
fn micros(time: Duration, quota: &Quota) -> Result<u64, BuildError> {
    let (micros, nanos) = (time.as_nanos() / 1_000, time.as_nanos() % 1_000);
    match u64::try_from(micros) {
        Ok(micros) if nanos == 0 => Ok(micros),
        _ => Err(BuildError::NotWholeMicroseconds { quota: Box::new(*quota) }),
    }
}

/// Whether another quota has no more permits in no shorter a window.
fn is_implied(quota: &Quota, quotas: &[Quota]) -> bool {
    let implies = |one: &Quota, other: &Quota| one.limit() <= other.limit() && one.window() >= other.window();
    quotas.iter().any(|other| implies(other, quota) && !implies(quota, other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(quota: Quota) -> Result<Layout, BuildError> {
        Layout::of(&[quota])
    }

    #[test]
    fn rates_need_no_whole_microseconds() {
        // Three every ten nanoseconds: 300 every microsecond.
        let rate = Rate::of(&Quota::token_bucket(5, 3, Duration::from_nanos(10))).unwrap();
        assert_eq!((rate.permits, rate.period), (300, 1));
        let rate = Rate::of(&Quota::token_bucket(5, 7, Duration::from_nanos(1_500))).unwrap();
        assert_eq!((rate.permits, rate.period), (14, 3));
        assert!(
            rate.stride >= Rate::LONG && rate.stride.is_multiple_of(14) && rate.stride / 14 * 3 == rate.stride_time
        );
    }

    #[test]
    fn what_doubles_cannot_compute_is_an_error_when_built() {
        let year = Duration::from_secs(365 * 86_400);
        // A prime number of permits a year: 3.2e13 microseconds times 4 times the capacity.
        assert!(layout(Quota::token_bucket(10, 7, year)).is_ok());
        let error = layout(Quota::token_bucket(100, 7, year)).err().unwrap();
        assert!(matches!(error, BuildError::TooLarge { .. }), "{error}");
        let day = Duration::from_secs(86_400);
        assert!(layout(Quota::sliding_counter(30_000, day)).is_ok());
        assert!(layout(Quota::sliding_counter(40_000, day)).is_err());
    }

    #[test]
    fn what_is_less_than_a_microsecond_is_an_error_when_built() {
        let odd = Duration::from_nanos(10_500);
        let step = Duration::from_nanos(3_500);
        for quota in [
            Quota::new(1, odd),
            Quota::fixed_window(1, odd),
            Quota::fixed_window(1, step * 2).aligned(step),
            Quota::sliding_counter(1, odd),
            Quota::quantised_log(1, odd, step),
            Quota::leaky_queue(1, odd, step),
        ] {
            let error = layout(quota).err().unwrap();
            assert!(matches!(error, BuildError::NotWholeMicroseconds { .. }), "{error}");
        }
    }

    #[test]
    fn the_script_is_told_of_the_windows_about_a_time() {
        let day = Duration::from_secs(86_400);
        let month = [0, 31, 59, 90].map(|days| day * days);
        for time in [day * 31, day * 40, day * 59 - Duration::from_nanos(1)] {
            assert_eq!(windows(Calendar::Month, Zone::UTC, time), month);
        }
        assert_eq!(windows(Calendar::Day, Zone::UTC, Duration::ZERO), [0, 0, 1, 2].map(|days| day * days));
        let quota = Quota::calendar(5, Calendar::Month, Zone::UTC);
        let shared = Shared { prefix: "tollgate", tag: None };
        let dimension =
            &plan(vec![Given { name: "api".to_owned(), tier: None, quotas: vec![quota] }], shared).unwrap()[0];
        let numbers = month.map(|time| Argument::Number(time.as_secs() * 1_000_000));
        let arguments = [[Argument::Word("M"), Argument::Number(5)].as_slice(), &numbers].concat();
        assert_eq!(dimension.arguments(day * 40, None).collect::<Vec<_>>(), arguments);
    }

    #[test]
    fn what_is_not_kept_is_an_error_when_built() {
        let second = Duration::from_secs(1);
        for quota in [Quota::per_minute(5).counting_refused(), Quota::warm_up(5, 1, second, second)] {
            assert!(matches!(layout(quota), Err(BuildError::NotKept { .. })));
            let error = Layout::of(&[Quota::per_minute(9), quota]).err();
            assert_eq!(error, Some(BuildError::NotKept { quota: Box::new(quota) }), "whichever it is");
        }
    }
}
