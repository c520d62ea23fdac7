//! A limiter in the state of an axum application, asked in a handler: for keys that come from a
//! body.
//!
//! `curl -i -d alice http://127.0.0.1:3000/newsletter`

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use tollgate::{Decision, Limiter, Quota};

async fn subscribe(State(limiter): State<Arc<Limiter<String>>>, name: String) -> Response {
    match limiter.try_acquire(name.as_str()) {
        Decision::Admitted(_) => "subscribed".into_response(),
        Decision::Denied(denial) => {
            let seconds = denial.retry_after_secs().unwrap_or(1).to_string();
            (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, seconds)]).into_response()
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = Arc::new(Limiter::<String>::new(Quota::per_day(1))?);
    let app = Router::new().route("/newsletter", post(subscribe)).with_state(limiter);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app).await?;
    Ok(())
}
