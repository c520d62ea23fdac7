//! `envoy.service.auth.v3.Authorization/Check`: Envoy's filter `ext_authz`.

use std::sync::Arc;

use envoy_types::pb::envoy::config::core::v3::header_value_option::HeaderAppendAction;
use envoy_types::pb::envoy::config::core::v3::{HeaderValue, HeaderValueOption, address};
use envoy_types::pb::envoy::service::auth::v3::authorization_server::Authorization;
use envoy_types::pb::envoy::service::auth::v3::check_response::HttpResponse;
use envoy_types::pb::envoy::service::auth::v3::{
    AttributeContext, CheckRequest, CheckResponse, DeniedHttpResponse, OkHttpResponse,
};
use envoy_types::pb::envoy::r#type::v3::HttpStatus;
use envoy_types::pb::google::rpc;
use tollgate_policy::Value;
use tonic::{Code, Request, Response, Status, async_trait};

use crate::answer::Answer;
use crate::authorize;
use crate::fields::{Field, PATH, Unfit};
use crate::guard::Guard;

/// The field with the method of the request.
const METHOD: &str = "method";

/// The field with the host of the request.
const HOST: &str = "host";

/// The service `Authorization`.
#[derive(Debug)]
pub(crate) struct Check {
    guard: Arc<Guard>,
}

impl Check {
    pub(crate) const fn new(guard: Arc<Guard>) -> Self {
        Self { guard }
    }
}

#[async_trait]
impl Authorization for Check {
    async fn check(&self, request: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        let attributes = request.into_inner().attributes.unwrap_or_default();
        let values = self.guard.fields.read(|field| value(field, &attributes));
        drop(attributes);
        let answer = authorize::decide_by(&self.guard, values).await;
        Ok(Response::new(to_response(answer)))
    }
}

/// The value of a field: the extension of its name, which the operator sets for a route; else its
/// header field, if one is named; else what Envoy knows of the request: the address of the client, by
/// the rules of the policy, the method, the path and the host.
fn value<'a>(field: &Field, attributes: &'a AttributeContext) -> Result<Option<Value<'a>>, Unfit> {
    let extension = attributes.context_extensions.get(&field.name);
    let http = || attributes.request.as_ref()?.http.as_ref();
    if let (None, false, true, Some(peer)) = (extension, field.is_named, field.is_address(), peer(attributes)) {
        // What a trusted proxy in front of Envoy says of the client is in a header field.
        return field.of_peer(peer, |name| http()?.headers.get(name)).map(Some);
    }
    let text = extension.map(String::as_str).or_else(|| match &*field.name {
        _ if field.is_named => http()?.headers.get(field.header.as_ref()?.as_str()).map(String::as_str),
        METHOD => Some(&http()?.method),
        PATH => Some(&http()?.path),
        HOST => Some(&http()?.host),
        _ => None,
    });
    match text {
        Some(text) if !text.is_empty() => field.value(text).map(Some),
        _ => Ok(None),
    }
}

/// The address of the client.
fn peer(attributes: &AttributeContext) -> Option<&str> {
    match attributes.source.as_ref()?.address.as_ref()?.address.as_ref()? {
        address::Address::SocketAddress(socket) => Some(&socket.address),
        _ => None,
    }
}

fn to_response(answer: Answer) -> CheckResponse {
    let status = i32::from(answer.status);
    let fields = answer.fields.iter().map(|(name, value)| header(name, &String::from_utf8_lossy(value)));
    let mut fields: Vec<HeaderValueOption> = fields.collect();
    let (code, message, response) = match answer.problem {
        None => {
            if !fields.is_empty() {
                // A response with the fields of one client is for no other, unless the service says so.
                let absent = HeaderAppendAction::AddIfAbsent.into();
                fields.push(HeaderValueOption { append_action: absent, ..header("cache-control", "no-store") });
            }
            let response = OkHttpResponse { response_headers_to_add: fields, ..OkHttpResponse::default() };
            (Code::Ok, "", HttpResponse::OkResponse(response))
        }
        Some(body) => {
            fields.push(header("content-type", "application/problem+json"));
            let status = Some(HttpStatus { code: status });
            (
                Code::PermissionDenied,
                "denied",
                HttpResponse::DeniedResponse(DeniedHttpResponse { status, headers: fields, body }),
            )
        }
    };
    let status = rpc::Status { code: code.into(), message: message.to_owned(), details: Vec::new() };
    CheckResponse { status: Some(status), http_response: Some(response), ..CheckResponse::default() }
}

/// A header field for Envoy to add. The fields of limits are lists; others replace what is there.
fn header(name: &str, value: &str) -> HeaderValueOption {
    let action = if name.starts_with("ratelimit") {
        HeaderAppendAction::AppendIfExistsOrAdd
    } else {
        HeaderAppendAction::OverwriteIfExistsOrAdd
    };
    HeaderValueOption {
        header: Some(HeaderValue { key: name.to_owned(), value: value.to_owned(), ..HeaderValue::default() }),
        append_action: action.into(),
        ..HeaderValueOption::default()
    }
}
