//! A proxy for a model that streams its answers. Each API key has a budget of tokens a minute, and a
//! number of streams at a time.
//!
//! A request is charged an estimate, and enters as a stream. When the answer has ended, or the client
//! has hung up, it is settled: the key is charged the tokens that were used. Both are decided together,
//! so a request that finds too many streams is charged nothing.

mod metered;
mod model;

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::StreamExt;
use metrics::{Key, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tollgate::{BuildError, JointError, Quota, ReserveError};
use tollgate_http::Problem;

pub use metered::{Budget, Counts, Estimated, Metered};
pub use model::{Prompt, model};

/// The proxy.
pub struct Gateway {
    budget: Arc<Budget>,
    /// The address of the model.
    model: String,
    client: reqwest::Client,
    counts: Counts,
    metrics: PrometheusHandle,
}

impl Gateway {
    /// A proxy for the model at this address. Each key has this budget of tokens, and so many streams
    /// at a time.
    ///
    /// # Errors
    ///
    /// When a quota cannot be used.
    pub fn new(model: String, tokens: Quota, streams: u32) -> Result<Self, BuildError> {
        let budget = Budget::builder()
            .dimension("tokens", [tokens])
            .dimension("streams", [Quota::concurrent(streams)])
            .build()?;
        let recorder = PrometheusBuilder::new().build_recorder();
        let counter = |name| {
            let metadata = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));
            recorder.register_counter(&Key::from_static_name(name), &metadata)
        };
        let counts = Counts { estimated: counter("tokens_estimated_total"), actual: counter("tokens_actual_total") };
        let (client, metrics) = (reqwest::Client::new(), recorder.handle());
        Ok(Self { budget: Arc::new(budget), model, client, counts, metrics })
    }

    /// The limiter.
    #[must_use]
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// The routes: `POST /chat`, and `GET /metrics`.
    pub fn routes(self: Arc<Self>) -> Router {
        let scraped = Arc::clone(&self);
        Router::new()
            .route("/chat", post(chat))
            .route("/metrics", get(async move || scraped.metrics.render()))
            .with_state(self)
    }

    /// The model's answer. Each of its lines is a token.
    async fn answer(&self, prompt: Bytes, mut metered: Metered) -> Result<Body, reqwest::Error> {
        let answer = self.client.post(&self.model).header(CONTENT_TYPE, "application/json").body(prompt).send().await;
        let answer = answer.and_then(reqwest::Response::error_for_status).inspect_err(|_| metered.costs_nothing())?;
        // The stream has the guard: it is dropped with the last part of the answer, or with the client's
        // connection.
        let parts = answer.bytes_stream().inspect(move |part| {
            if let Ok(part) = part {
                metered.count(part);
            }
        });
        Ok(Body::from_stream(parts))
    }
}

async fn chat(State(gateway): State<Arc<Gateway>>, fields: HeaderMap, body: Bytes) -> Result<Response, Refused> {
    let key = fields.get("x-api-key").and_then(|key| key.to_str().ok()).ok_or(Refused::NoKey)?;
    let prompt: Prompt = serde_json::from_slice(&body).map_err(|error| Refused::Malformed(error.to_string()))?;
    let reserved = gateway.budget.reserve_owned((key, key), prompt.estimate()).map_err(Refused::ByBudget)?;
    let metered = Metered::new(reserved, prompt.tokens(), &gateway.counts);
    let answer = gateway.answer(body, metered).await.map_err(|error| Refused::NoAnswer(error.to_string()))?;
    Ok(answer.into_response())
}

/// Why a request has no answer of the model.
#[derive(Debug)]
enum Refused {
    NoKey,
    Malformed(String),
    ByBudget(ReserveError),
    NoAnswer(String),
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let text = |status: StatusCode, text: String| (status, text + "\n").into_response();
        match self {
            Self::NoKey => text(StatusCode::UNAUTHORIZED, "send an `x-api-key`".into()),
            Self::Malformed(error) => text(StatusCode::BAD_REQUEST, error),
            Self::NoAnswer(error) => text(StatusCode::BAD_GATEWAY, error),
            Self::ByBudget(ReserveError::Denied(denial)) => Problem::from(denial).into_response(),
            Self::ByBudget(ReserveError::CostExceedsLimit(error) | ReserveError::Joint(JointError::Cost(error))) => {
                Problem::from(error).into_response()
            }
            Self::ByBudget(error) => text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("model", &self.model).field("budget", &self.budget).finish_non_exhaustive()
    }
}
