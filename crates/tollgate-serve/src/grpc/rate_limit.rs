//! `envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit`: Envoy's filter `ratelimit`.

use std::borrow::Cow;
use std::sync::Arc;

use envoy_types::pb::envoy::config::core::v3::HeaderValue;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{Code, DescriptorStatus, RateLimit};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::RateLimitService;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use envoy_types::pb::google::protobuf::Duration;
use tollgate::MAX_DIMENSIONS;
use tollgate_http::middleware::Ruling;
use tollgate_http::{DenialKind, ServiceLimit};
use tonic::{Request, Response, Status, async_trait};

use crate::answer::Answer;
use crate::ask::{Ask, Asked, Decided};
use crate::fields::{Fields, Values, apart};
use crate::guard::Guard;

/// The service `RateLimitService`.
#[derive(Debug)]
pub(crate) struct ShouldRateLimit {
    guard: Arc<Guard>,
}

impl ShouldRateLimit {
    pub(crate) const fn new(guard: Arc<Guard>) -> Self {
        Self { guard }
    }
}

#[async_trait]
impl RateLimitService for ShouldRateLimit {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        let request = request.into_inner();
        let read = read(&self.guard.fields, &request);
        let (values, asked, ask) = read.inspect_err(|_| self.guard.counts.malformed())?;
        let values = apart(values);
        drop(request);
        let lacks =
            |lacks| Status::invalid_argument(format!("the entry {:?} is missing", self.guard.lacked(lacks).name));
        let decided = self.guard.decide(values, ask).await.map_err(lacks)?;
        Ok(Response::new(to_response(&decided, &asked)))
    }
}

/// The values of the fields, the dimensions that each descriptor asks, and what all of them ask.
fn read<'a>(fields: &Fields, request: &'a RateLimitRequest) -> Result<(Values<'a>, Vec<Asked>, Ask), Status> {
    if request.descriptors.is_empty() {
        return Err(Status::invalid_argument("there is no descriptor"));
    }
    let mut values = fields.none();
    let mut asked = Vec::with_capacity(request.descriptors.len());
    let cost = cost(request)?;
    let mut asks = [false; MAX_DIMENSIONS];
    for descriptor in &request.descriptors {
        if descriptor.limit.is_some() {
            return Err(Status::invalid_argument("a descriptor has a limit of its own: the policy has the limits"));
        }
        let places = places(fields, descriptor)?;
        let of_descriptor = dimensions(fields, &places)?;
        for (entry, place) in descriptor.entries.iter().zip(places) {
            let field = &fields.list()[place];
            let value = field.value(Cow::Borrowed(entry.value.as_str())).map_err(|unfit| {
                Status::invalid_argument(format!("the entry {:?} {}", field.name, unfit.in_words()))
            })?;
            if values[place].replace(value.clone()).is_some_and(|before| before != value) {
                return Err(Status::invalid_argument(format!("the entry {:?} has two values", field.name)));
            }
        }
        asks.iter_mut().zip(of_descriptor).for_each(|(asks, of_descriptor)| *asks |= of_descriptor);
        asked.push(of_descriptor);
    }
    if !asks.contains(&true) {
        return Err(unknown(fields));
    }
    Ok((values, asked, Ask { cost, asks: Some(asks), ..Ask::default() }))
}

/// The permits that a request asks for of each dimension; 1 if it does not tell.
fn cost(request: &RateLimitRequest) -> Result<u32, Status> {
    let of_request = u64::from(request.hits_addend.max(1));
    let mut costs = request.descriptors.iter().map(|it| it.hits_addend.as_ref().map_or(of_request, |cost| cost.value));
    let cost = costs.next().unwrap_or(of_request);
    if costs.any(|other| other != cost) {
        return Err(Status::invalid_argument("descriptors have different hits_addend: all are charged the same"));
    }
    match u32::try_from(cost) {
        Ok(0) => Err(Status::invalid_argument("hits_addend is zero: a descriptor is charged 1 or more")),
        Ok(cost) => Ok(cost),
        Err(_) => Err(Status::invalid_argument("hits_addend is more than 4294967295")),
    }
}

/// The places of the fields that the entries of a descriptor give.
fn places(fields: &Fields, descriptor: &RateLimitDescriptor) -> Result<Vec<usize>, Status> {
    let places = descriptor.entries.iter().map(|entry| fields.place_of_entry(&entry.key));
    places.collect::<Option<_>>().ok_or_else(|| unknown(fields))
}

/// The dimensions whose keys have these fields and no others, in any order. Fields that no key has, for
/// matches and tiers, may come with them, or alone.
fn dimensions(fields: &Fields, places: &[usize]) -> Result<Asked, Status> {
    let mut asked = [false; MAX_DIMENSIONS];
    let of_keys: Vec<usize> = places.iter().copied().filter(|place| fields.list()[*place].is_in_key).collect();
    if of_keys.is_empty() && !places.is_empty() {
        return Ok(asked);
    }
    for (asked, of_dimension) in asked.iter_mut().zip(fields.dimensions()) {
        *asked = of_dimension.len() == of_keys.len() && of_dimension.iter().all(|part| of_keys.contains(&part.field));
    }
    if asked.contains(&true) { Ok(asked) } else { Err(unknown(fields)) }
}

/// The entries are not the policy's, so that they are not told.
fn unknown(fields: &Fields) -> Status {
    let known = fields.in_words();
    Status::invalid_argument(format!(
        "no dimension has the entries of a descriptor as its fields; the policy has {known}"
    ))
}

fn to_response(decided: &Decided, asked: &[Asked]) -> RateLimitResponse {
    let answer = Answer::of(decided);
    let code = if answer.is_admitted() { Code::Ok } else { Code::OverLimit };
    let statuses = asked.iter().map(|asked| status(decided, asked)).collect();
    let mut fields: Vec<HeaderValue> =
        answer.fields.iter().map(|(name, value)| header(name, &String::from_utf8_lossy(value))).collect();
    let mut raw_body = Vec::new();
    // Envoy answers with 429 whatever the reason; details of another status would contradict it.
    if let Some(problem) = answer.problem.filter(|_| answer.status == 429) {
        fields.push(header("content-type", "application/problem+json"));
        raw_body = problem.into_bytes();
    }
    RateLimitResponse {
        overall_code: code.into(),
        statuses,
        response_headers_to_add: fields,
        raw_body,
        ..RateLimitResponse::default()
    }
}

/// The status of one descriptor.
fn status(decided: &Decided, asked: &Asked) -> DescriptorStatus {
    let wanted = |dimension: usize| asked.get(dimension).copied().unwrap_or_default();
    let (code, limit) = match decided.ruling() {
        Ruling::Admitted => (Code::Ok, decided.tightest(wanted)),
        Ruling::Uncounted | Ruling::Overruled => (Code::Ok, None),
        // Another descriptor is over the limit.
        Ruling::Denied(DenialKind::Quota | DenialKind::InFlight) if decided.violated(wanted).next().is_none() => {
            (Code::Ok, None)
        }
        Ruling::Denied(_) => (Code::OverLimit, ServiceLimit::tightest(decided.violated(wanted))),
    };
    DescriptorStatus {
        code: code.into(),
        current_limit: limit.map(|limit| RateLimit {
            name: limit.policy().name().to_owned(),
            requests_per_unit: limit.limit(),
            unit: unit(limit.policy().window()).into(),
        }),
        limit_remaining: limit.map_or(0, |limit| limit.remaining()),
        duration_until_reset: limit
            .and_then(|limit| limit.reset())
            .map(|reset| Duration { seconds: i64::try_from(reset).unwrap_or(i64::MAX), nanos: 0 }),
        ..DescriptorStatus::default()
    }
}

/// The unit of a window in seconds; unknown if none is as long.
const fn unit(window: u32) -> Unit {
    match window {
        1 => Unit::Second,
        60 => Unit::Minute,
        3_600 => Unit::Hour,
        86_400 => Unit::Day,
        604_800 => Unit::Week,
        _ => Unit::Unknown,
    }
}

fn header(name: &str, value: &str) -> HeaderValue {
    HeaderValue { key: name.to_owned(), value: value.to_owned(), ..HeaderValue::default() }
}
