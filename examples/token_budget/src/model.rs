//! What is asked of the model, and a model for those who have none.

use std::time::Duration;

use axum::body::Body;
use axum::routing::post;
use axum::{Json, Router};
use futures_util::{StreamExt, stream};
use serde::Deserialize;

/// A question for the model.
#[derive(Debug, Clone, Deserialize)]
pub struct Prompt {
    /// The text.
    pub prompt: String,
    /// The most tokens that the client expects.
    #[serde(default = "usual")]
    pub max_tokens: u32,
}

const fn usual() -> u32 {
    200
}

impl Prompt {
    /// The tokens of the text: a word is one here. A real service asks the model's tokeniser.
    #[must_use]
    pub fn tokens(&self) -> u32 {
        u32::try_from(self.prompt.split_whitespace().count()).unwrap_or(u32::MAX)
    }

    /// The tokens that the request is charged before there is an answer.
    #[must_use]
    pub fn estimate(&self) -> u32 {
        self.tokens().saturating_add(self.max_tokens)
    }
}

/// A model that says the prompt again, a word every tenth of a second, each on a line.
pub fn model() -> Router {
    Router::new().route(
        "/",
        post(async |Json(Prompt { prompt, .. }): Json<Prompt>| {
            let words: Vec<String> = prompt.split_whitespace().map(|word| format!("{word}\n")).collect();
            Body::from_stream(stream::iter(words).then(async |word| {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok::<_, std::convert::Infallible>(word)
            }))
        }),
    )
}
