//! The proxy on a socket, asked by a client, before a model that answers when a test says so.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Json;
use axum::http::StatusCode;
use axum::routing::post;
use reqwest::{Client, Response};
use token_budget::{Gateway, Prompt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tollgate::Quota;

type Part = Result<Bytes, std::io::Error>;

/// The answers that are being given, by their prompts.
type Answers = Arc<Mutex<HashMap<String, UnboundedSender<Part>>>>;

struct World {
    gateway: Arc<Gateway>,
    answers: Answers,
    client: Client,
    address: String,
}

async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

impl World {
    async fn new() -> Self {
        let answers = Answers::default();
        let model = {
            let answers = Arc::clone(&answers);
            post(async move |Json(Prompt { prompt, .. }): Json<Prompt>| {
                if prompt == "fail" {
                    return Err(StatusCode::SERVICE_UNAVAILABLE);
                }
                let (sender, receiver) = unbounded_channel();
                answers.lock().unwrap().insert(prompt, sender);
                Ok(Body::from_stream(UnboundedReceiverStream::new(receiver)))
            })
        };
        let model = serve(Router::new().route("/", model)).await;
        // Nothing flows back while a test runs.
        let tokens = Quota::token_bucket(1000, 1, Duration::from_secs(3600));
        let gateway = Arc::new(Gateway::new(format!("{model}/"), tokens, 4).unwrap());
        let address = serve(Arc::clone(&gateway).routes()).await;
        Self { gateway, answers, client: Client::new(), address }
    }

    async fn ask(&self, prompt: &str, max_tokens: u32) -> Response {
        let body = format!(r#"{{"prompt": "{prompt}", "max_tokens": {max_tokens}}}"#);
        let request = self.client.post(format!("{}/chat", self.address)).header("x-api-key", "alice").body(body);
        request.send().await.unwrap()
    }

    /// The model says so many tokens to this prompt.
    fn says(&self, prompt: &str, tokens: usize) {
        self.answers.lock().unwrap()[prompt].send(Ok("x\n".repeat(tokens).into())).unwrap();
    }

    fn ends(&self, prompt: &str) {
        self.answers.lock().unwrap().remove(prompt).unwrap();
    }

    /// The tokens and the streams that are left.
    fn left(&self) -> [u32; 2] {
        let status = self.gateway.budget().peek(("alice", "alice")).unwrap();
        let left: Vec<u32> = status.quotas().map(|quota| quota.remaining()).collect();
        left.try_into().unwrap()
    }

    /// Waits until so many tokens and streams are left.
    async fn until_left(&self, left: [u32; 2]) {
        let reached = async {
            while self.left() != left {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(60), reached).await;
        assert!(in_time.is_ok(), "{:?} are left, and not {left:?}", self.left());
    }
}

#[tokio::test]
async fn a_request_is_charged_an_estimate_and_settled_when_its_answer_has_ended() {
    let world = World::new().await;
    let answer = world.ask("two words", 300).await;
    assert_eq!((answer.status(), world.left()), (StatusCode::OK, [698, 3]));
    world.says("two words", 120);
    world.ends("two words");
    assert_eq!(answer.text().await.unwrap().lines().count(), 120);
    // 2 of the prompt, and 120.
    world.until_left([878, 4]).await;
    let metrics = world.client.get(format!("{}/metrics", world.address)).send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("tokens_estimated_total 302\n"), "{metrics}");
    assert!(metrics.contains("tokens_actual_total 122\n"), "{metrics}");
}

#[tokio::test]
async fn a_client_that_hangs_up_is_charged_what_the_model_has_said() {
    let world = World::new().await;
    let mut answer = world.ask("hello", 300).await;
    world.says("hello", 50);
    let mut lines = 0;
    while lines < 50 {
        let part = answer.chunk().await.unwrap().unwrap();
        lines += part.iter().filter(|byte| **byte == b'\n').count();
    }
    assert_eq!(world.left(), [699, 3]);
    drop(answer);
    world.until_left([949, 4]).await;
}

#[tokio::test]
async fn four_streams_are_open_at_a_time() {
    let world = World::new().await;
    let mut answers = Vec::new();
    for prompt in ["a", "b", "c", "d"] {
        answers.push(world.ask(prompt, 9).await);
        world.says(prompt, 1);
    }
    let fifth = world.ask("e", 9).await;
    assert_eq!(fifth.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(world.left(), [960, 0], "the fifth was charged nothing");
    world.ends("a");
    world.until_left([968, 1]).await;
    assert_eq!(world.ask("e", 9).await.status(), StatusCode::OK);
}

/// 1,900 tokens are used of 1,000: the rest is debt, and no later request is let through by it.
#[tokio::test]
async fn an_answer_that_is_longer_than_the_budget_is_owed() {
    let world = World::new().await;
    let answer = world.ask("x", 999).await;
    assert_eq!(world.left(), [0, 3]);
    world.says("x", 1899);
    world.ends("x");
    assert_eq!(answer.text().await.unwrap().lines().count(), 1899);
    world.until_left([0, 4]).await;
    let denied = world.ask("y", 0).await;
    assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
    // Of a permit an hour, 900 that are owed and one.
    let wait: u64 = denied.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((900 * 3600..=901 * 3600).contains(&wait), "{wait}");
}

#[tokio::test]
async fn what_the_model_did_not_take_costs_nothing() {
    let world = World::new().await;
    assert_eq!(world.ask("fail", 300).await.status(), StatusCode::BAD_GATEWAY);
    assert_eq!(world.left(), [1000, 4]);
    assert_eq!(world.ask("x", 1000).await.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let no_key = world.client.post(format!("{}/chat", world.address)).body("{}").send().await.unwrap();
    assert_eq!(no_key.status(), StatusCode::UNAUTHORIZED);
    let malformed = world.client.post(format!("{}/chat", world.address)).header("x-api-key", "alice").body("{");
    assert_eq!(malformed.send().await.unwrap().status(), StatusCode::BAD_REQUEST);
    assert_eq!(world.left(), [1000, 4]);
}
