//! The fields of quotas, for programs that read or write quotas in a form of their own.
//!
//! Policy files, serde formats, snapshots and the options of the program `tollgate` have the names
//! of algorithms and fields from here. A program that reads another form can do the same:
//!
//! ```
//! use tollgate::schema::{Field, FieldKind, FieldValue};
//! use tollgate::{Algorithm, Quota, Zone, parse_duration};
//!
//! fn read(text: &str) -> Result<Quota, Box<dyn std::error::Error>> {
//!     let (name, fields) = text.split_once(':').ok_or("no algorithm")?;
//!     let algorithm = Algorithm::from_name(name).ok_or("no such algorithm")?;
//!     let mut values = Vec::new();
//!     for (name, text) in fields.split_whitespace().filter_map(|field| field.split_once('=')) {
//!         let field = Field::from_name(name).ok_or("no such field")?;
//!         let value = match field.kind() {
//!             FieldKind::Duration => FieldValue::Duration(parse_duration(text)?),
//!             FieldKind::Flag => FieldValue::Flag(text == "yes"),
//!             FieldKind::Number => FieldValue::Number(text.parse()?),
//!             FieldKind::Zone => FieldValue::Zone(Zone::named(text)?),
//!         };
//!         values.push((field, value));
//!     }
//!     Ok(Quota::from_fields(algorithm, &values)?)
//! }
//!
//! let second = std::time::Duration::from_secs(1);
//! let bucket = read("token-bucket: capacity=20 refill=5 per=1s start=0")?;
//! assert_eq!(bucket, Quota::token_bucket(20, 5, second).starting_with(0));
//! let error = read("token-bucket: capacity=20 per=1s").unwrap_err();
//! assert_eq!(error.to_string(), "`refill` is missing: a token bucket needs it");
//! let error = read("fixed-window: limit=20 per=1s refill=5").unwrap_err();
//! assert_eq!(error.to_string(), "a fixed window has no field `refill`: only a token bucket has it");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use core::time::Duration;

use super::calendar::{Calendar, Zone};
use super::kind::{Algorithm, Kind};
use super::valid::QuotaError;
use super::value::Quota;
use crate::texts::texts;

/// Passes all fields to a macro. Each has its variant, its name, its kind, its place among the
/// numbers of a snapshot (no two fields of an algorithm have the same), and its meaning.
///
/// They are in their order in formats without field names: a new one is the last.
macro_rules! fields {
    ($with:ident) => {
        $with! {
            Limit limit Number 1 "Permits that a key may be granted in a window";
            Capacity capacity Number 1 "Permits that a key's bucket holds";
            Refill refill Number 3 "Permits that come back to a token bucket every `per`";
            Leak leak Number 3
                "Permits that run out of a leaky bucket, or leave a queue, every `per`";
            Per per Duration 4 "Length of the window, or what `refill`, `leak` and `rate` are per";
            MaxDelay max_delay Duration 5 "The longest that a request may be kept in a queue";
            Resolution resolution Duration 5
                "Length of the steps that a quantised log counts permits in";
            Start start Number 6 "Permits in a new key's bucket, which is full by default";
            Phase phase Duration 7
                "When a window begins, after the start of 1970 (UTC); the others follow from it";
            CountingRefused counting_refused Flag 0
                "Count refused requests too: a client that goes on asking stays refused";
            Rate rate Number 3 "Permits every `per` of a limiter that is warm";
            WarmUp warm_up Duration 5 "The time in which a cold limiter becomes warm";
            Zone zone Zone 0 "Time zone of a `per` that is a day, week or month: UTC by default";
            MaxHold max_hold Duration 5
                "The longest that a store or a server counts a request whose end it is not told";
        }
    };
}
#[cfg(feature = "serde")]
pub(super) use fields;

macro_rules! declare_fields {
    ($($Field:ident $name:ident $Kind:ident $place:literal $meaning:literal;)+) => {
        /// A number, a duration or an option of a quota, with its name in files.
        ///
        /// ```
        /// use tollgate::schema::{Field, FieldKind};
        ///
        /// assert_eq!(Field::from_name("max_delay"), Some(Field::MaxDelay));
        /// assert_eq!((Field::Per.name(), Field::Per.kind()), ("per", FieldKind::Duration));
        /// assert_eq!(Field::Capacity.meaning(), "Permits that a key's bucket holds");
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Field {
            $(#[doc = concat!($meaning, ".")] $Field,)+
        }

        impl Field {
            /// All fields.
            ///
            /// ```
            /// use tollgate::schema::Field;
            ///
            /// assert_eq!(Field::ALL[0].name(), "limit");
            /// ```
            pub const ALL: &'static [Self] = &[$(Self::$Field),+];

            /// Its name in files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$Field => stringify!($name),)+ }
            }

            /// The type of its values.
            #[must_use]
            pub const fn kind(self) -> FieldKind {
                match self { $(Self::$Field => FieldKind::$Kind,)+ }
            }

            /// What it is, in a sentence without a full stop. Other fields are in backticks.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$Field => $meaning,)+ }
            }

            /// Its place among the numbers of a snapshot; zero if it has none.
            #[cfg(feature = "snapshot")]
            pub(crate) const fn place(self) -> usize {
                match self { $(Self::$Field => $place,)+ }
            }
        }
    };
}
fields!(declare_fields);

impl Field {
    /// The field of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|field| field.name() == name)
    }
}

/// The type of a field's values.
///
/// ```
/// use tollgate::schema::{Field, FieldKind};
///
/// assert_eq!([Field::Limit, Field::Per].map(Field::kind), [FieldKind::Number, FieldKind::Duration]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// A number of permits.
    Number,
    /// A duration. [`Field::Per`] may also be a [`Calendar`] window.
    Duration,
    /// On or off.
    Flag,
    /// The name of a time zone.
    Zone,
}

/// A value of a field.
///
/// ```
/// use tollgate::Quota;
/// use tollgate::schema::{Field, FieldValue};
///
/// let values: Vec<_> = Quota::per_minute(5).counting_refused().fields().collect();
/// assert_eq!(values[0], (Field::Limit, FieldValue::Number(5)));
/// assert_eq!(values[2], (Field::CountingRefused, FieldValue::Flag(true)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldValue {
    /// A number of permits.
    Number(u32),
    /// A duration.
    Duration(Duration),
    /// On or off.
    Flag(bool),
    /// A window of the calendar, as `per` of a fixed window.
    Calendar(Calendar),
    /// A time zone.
    Zone(Zone),
}

/// Declares the name, the fields and the meaning of each algorithm, in the order of the variants.
macro_rules! algorithms {
    ($($Algorithm:ident $name:literal [$($needed:ident)+] [$($optional:ident)*] $meaning:literal;)+) => {
        impl Algorithm {
            /// All algorithms.
            ///
            /// ```
            /// use tollgate::Algorithm;
            ///
            /// assert_eq!(Algorithm::ALL[0], Algorithm::SlidingWindowLog);
            /// ```
            pub const ALL: &'static [Self] = &[$(Self::$Algorithm),+];

            /// Its name in files and options.
            ///
            /// ```
            /// use tollgate::Algorithm;
            ///
            /// assert_eq!(Algorithm::TokenBucket.name(), "token-bucket");
            /// ```
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$Algorithm => $name,)+ }
            }

            /// What it does, in a sentence without a full stop. Fields are in backticks.
            ///
            /// ```
            /// use tollgate::Algorithm;
            ///
            /// assert_eq!(Algorithm::SlidingWindowLog.meaning(), "At most `limit` in any `per`");
            /// ```
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$Algorithm => $meaning,)+ }
            }

            /// The fields that each of its quotas has.
            ///
            /// ```
            /// use tollgate::Algorithm;
            /// use tollgate::schema::Field;
            ///
            /// let needed = [Field::Capacity, Field::Refill, Field::Per];
            /// assert_eq!(Algorithm::TokenBucket.needed_fields(), needed);
            /// ```
            #[must_use]
            pub const fn needed_fields(self) -> &'static [Field] {
                match self { $(Self::$Algorithm => &[$(Field::$needed),+],)+ }
            }

            /// The fields that its quotas may have besides.
            ///
            /// ```
            /// use tollgate::Algorithm;
            /// use tollgate::schema::Field;
            ///
            /// assert_eq!(Algorithm::TokenBucket.optional_fields(), [Field::Start]);
            /// ```
            #[must_use]
            pub const fn optional_fields(self) -> &'static [Field] {
                match self { $(Self::$Algorithm => &[$(Field::$optional),*],)+ }
            }
        }
    };
}

algorithms! {
    SlidingWindowLog "sliding-window-log" [Limit Per] [CountingRefused]
        "At most `limit` in any `per`";
    TokenBucket "token-bucket" [Capacity Refill Per] [Start]
        "Holds `capacity` permits, and `refill` come back every `per`";
    LeakyBucket "leaky-bucket" [Capacity Leak Per] []
        "Holds `capacity` permits, and `leak` run out every `per`";
    LeakyQueue "leaky-queue" [Leak Per MaxDelay] []
        "`leak` leave every `per`, and no request waits longer than `max_delay`";
    FixedWindow "fixed-window" [Limit Per] [Phase Zone]
        "`limit` from a first request until `per` later, or in each day, week or month";
    SlidingCounter "sliding-counter" [Limit Per] [Phase]
        "`limit` per `per`, by the counts of two windows: for limits of 10 and more";
    QuantisedLog "quantised-log" [Limit Per Resolution] []
        "At most `limit` in any `per`, remembered in steps of `resolution`";
    WarmUp "warm-up" [Limit Rate Per WarmUp] []
        "A cold limiter rises to `rate` every `per` within `warm_up`, with at most `limit` at once";
    Concurrency "concurrency" [Limit] [MaxHold]
        "At most `limit` requests are in flight at once";
}

impl Algorithm {
    /// The algorithm of this name.
    ///
    /// ```
    /// use tollgate::Algorithm;
    ///
    /// assert_eq!(Algorithm::from_name("token-bucket"), Some(Algorithm::TokenBucket));
    /// assert_eq!(Algorithm::from_name("tocken-bucket"), None);
    /// ```
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|algorithm| algorithm.name() == name)
    }

    /// Whether its quotas have this field, needed or optional.
    ///
    /// ```
    /// use tollgate::Algorithm;
    /// use tollgate::schema::Field;
    ///
    /// assert!(Algorithm::FixedWindow.has_field(Field::Phase));
    /// assert!(!Algorithm::FixedWindow.has_field(Field::Start));
    /// ```
    #[must_use]
    pub fn has_field(self, field: Field) -> bool {
        self.needed_fields().contains(&field) || self.optional_fields().contains(&field)
    }
}

impl Quota {
    /// The valid quota of these fields, in any order. A flag that is off may be left out.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::schema::{Field, FieldValue};
    /// use tollgate::{Algorithm, Quota};
    ///
    /// let minute = Duration::from_secs(60);
    /// let fields = [(Field::Per, FieldValue::Duration(minute)), (Field::Limit, FieldValue::Number(5))];
    /// assert_eq!(Quota::from_fields(Algorithm::FixedWindow, &fields)?, Quota::fixed_window(5, minute));
    /// # Ok::<(), tollgate::schema::FieldError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`FieldError`] for a field that the algorithm needs and that is missing, for one that it does
    /// not have, for a value of another type, and for a quota that is not [valid](Self::validate).
    pub fn from_fields(algorithm: Algorithm, fields: &[(Field, FieldValue)]) -> Result<Self, FieldError> {
        let calendar = fields.iter().find_map(|&field| match field {
            (Field::Per, FieldValue::Calendar(calendar)) => Some(calendar),
            _ => None,
        });
        if let Some(calendar) = calendar.filter(|_| algorithm != Algorithm::FixedWindow) {
            return Err(FieldError::CalendarNeedsFixedWindow { calendar, algorithm });
        }
        for &(field, value) in fields {
            match (field.kind(), value) {
                (FieldKind::Number, FieldValue::Number(_))
                | (FieldKind::Duration, FieldValue::Duration(_))
                | (FieldKind::Flag, FieldValue::Flag(_))
                | (FieldKind::Zone, FieldValue::Zone(_)) => {}
                (FieldKind::Duration, FieldValue::Calendar(_)) if field == Field::Per => {}
                _ => return Err(FieldError::OtherKind { field }),
            }
            if !algorithm.has_field(field) && value != FieldValue::Flag(false) {
                return Err(FieldError::Foreign { field, algorithm });
            }
        }
        let given = |field| fields.iter().find(|(other, _)| *other == field).map(|&(_, value)| value);
        let missing = |field| FieldError::Missing { field, algorithm };
        let number = |field| match given(field) {
            Some(FieldValue::Number(number)) => Ok(number),
            _ => Err(missing(field)),
        };
        let time = |field| match given(field) {
            Some(FieldValue::Duration(time)) => Ok(time),
            _ => Err(missing(field)),
        };
        let zone = match given(Field::Zone) {
            Some(FieldValue::Zone(zone)) => Some(zone),
            _ => None,
        };
        // Of several fields that are missing, the error names `per`.
        let has_per = calendar.is_none() && algorithm.has_field(Field::Per);
        let per = if has_per { time(Field::Per)? } else { Duration::ZERO };
        if zone.is_some() && calendar.is_none() {
            return Err(FieldError::ZoneNeedsCalendar);
        }
        let quota = match algorithm {
            Algorithm::SlidingWindowLog => Self::new(number(Field::Limit)?, per),
            Algorithm::TokenBucket => Self::token_bucket(number(Field::Capacity)?, number(Field::Refill)?, per),
            Algorithm::LeakyBucket => Self::leaky_bucket(number(Field::Capacity)?, number(Field::Leak)?, per),
            Algorithm::LeakyQueue => Self::leaky_queue(number(Field::Leak)?, per, time(Field::MaxDelay)?),
            Algorithm::FixedWindow => match calendar {
                Some(calendar) => Self::calendar(number(Field::Limit)?, calendar, zone.unwrap_or(Zone::UTC)),
                None => Self::fixed_window(number(Field::Limit)?, per),
            },
            Algorithm::SlidingCounter => Self::sliding_counter(number(Field::Limit)?, per),
            Algorithm::QuantisedLog => Self::quantised_log(number(Field::Limit)?, per, time(Field::Resolution)?),
            Algorithm::WarmUp => Self::warm_up(number(Field::Limit)?, number(Field::Rate)?, per, time(Field::WarmUp)?),
            Algorithm::Concurrency => {
                let quota = Self::concurrent(number(Field::Limit)?);
                time(Field::MaxHold).map_or(quota, |max_hold| quota.held_at_most(max_hold))
            }
        };
        let quota = Self {
            start: number(Field::Start).ok(),
            phase: time(Field::Phase).ok(),
            counts_refused: given(Field::CountingRefused) == Some(FieldValue::Flag(true)),
            ..quota
        };
        quota.validate().map_err(FieldError::Invalid)?;
        Ok(quota)
    }

    /// The values of its fields, without those that are not set. [`from_fields`](Self::from_fields)
    /// makes the same quota of them, but for its [name](Self::name).
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate::schema::Field;
    ///
    /// let quota = Quota::per_minute(5).counting_refused();
    /// let fields: Vec<_> = quota.fields().collect();
    /// assert_eq!(Quota::from_fields(quota.algorithm(), &fields), Ok(quota));
    /// ```
    pub fn fields(&self) -> impl Iterator<Item = (Field, FieldValue)> {
        Field::ALL.iter().filter_map(|&field| Some((field, self.field(field)?)))
    }

    /// The value of a field, if the quota has it.
    pub(super) fn field(&self, field: Field) -> Option<FieldValue> {
        let (permits, per, most) = match self.kind() {
            Kind::Log | Kind::FixedWindow | Kind::Calendar { .. } => (0, self.window(), Duration::ZERO),
            Kind::TokenBucket { refill: permits, per } | Kind::LeakyBucket { leak: permits, per } => {
                (permits, per, Duration::ZERO)
            }
            Kind::LeakyQueue { leak, per, max_delay } => (leak, per, max_delay),
            Kind::WarmUp { rate, per, warm_up } => (rate, per, warm_up),
            Kind::SlidingCounter { window } => (0, window, Duration::ZERO),
            Kind::QuantisedLog { window, resolution } => (0, window, resolution),
            Kind::Concurrency { max_hold } => (0, Duration::ZERO, max_hold.unwrap_or_default()),
        };
        let value = match field {
            Field::Limit | Field::Capacity => FieldValue::Number(self.limit()),
            Field::Refill | Field::Leak | Field::Rate => FieldValue::Number(permits),
            Field::Per => match self.calendar_window() {
                Some((calendar, _)) => FieldValue::Calendar(calendar),
                None => FieldValue::Duration(per),
            },
            Field::Zone => FieldValue::Zone(self.calendar_window()?.1),
            Field::MaxHold if most.is_zero() => return None,
            Field::MaxDelay | Field::Resolution | Field::WarmUp | Field::MaxHold => FieldValue::Duration(most),
            Field::Start => FieldValue::Number(self.start()?),
            Field::Phase => FieldValue::Duration(self.phase()?),
            Field::CountingRefused => FieldValue::Flag(self.is_counting_refused().then_some(true)?),
        };
        self.algorithm().has_field(field).then_some(value)
    }
}

/// Why fields are no quota.
///
/// ```
/// use tollgate::schema::{Field, FieldError};
/// use tollgate::{Algorithm, Quota};
///
/// let algorithm = Algorithm::FixedWindow;
/// let error = Quota::from_fields(algorithm, &[]).unwrap_err();
/// assert_eq!(error, FieldError::Missing { field: Field::Per, algorithm });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldError {
    /// The algorithm needs a field that is missing.
    Missing {
        /// The field.
        field: Field,
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// The algorithm does not have the field.
    Foreign {
        /// The field.
        field: Field,
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// The value has another type than the field.
    OtherKind {
        /// The field.
        field: Field,
    },
    /// `per` is a window of the calendar, and the algorithm is not a fixed window.
    CalendarNeedsFixedWindow {
        /// The window.
        calendar: Calendar,
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// The quota has a time zone, and `per` is not a window of the calendar.
    ZoneNeedsCalendar,
    /// The fields are complete, and their values are not valid.
    Invalid(QuotaError),
}

texts! { FieldError {
    Missing { field, algorithm } => "`{}` is missing: a {algorithm} needs it", field.name();
    Foreign { field, algorithm } => "a {algorithm} has no field `{}`: only a {} has it", field.name(), those_with(*field);
    OtherKind { field } => "the value of `{}` is not a {:?}", field.name(), field.kind();
    CalendarNeedsFixedWindow { calendar, algorithm } => "a {algorithm} has no window of a calendar {calendar}: only a \
        {} has it", Algorithm::FixedWindow;
    ZoneNeedsCalendar => "`zone` is for windows of the calendar: give a day, a week or a month as `per`";
    Invalid(error) => "{error}";
} }

fn those_with(field: Field) -> String {
    let those = Algorithm::ALL.iter().filter(|algorithm| algorithm.has_field(field));
    those.map(Algorithm::to_string).collect::<Vec<_>>().join(" or a ")
}

impl core::error::Error for FieldError {}
