//! The messages of the OpenTelemetry protocol that one trace needs, with the field numbers of its stable `trace/v1`.
//! What is left out of them is optional there.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message as _;

use crate::machine::id::VmName;

/// `ExportTraceServiceRequest`.
#[derive(Clone, PartialEq, prost::Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    resources: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scopes: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) trace: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) id: Vec<u8>,
    /// Empty: it is the root.
    #[prost(bytes = "vec", tag = "4")]
    pub(super) parent: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(super) name: String,
    #[prost(enumeration = "Kind", tag = "6")]
    pub(super) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(super) start_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub(super) end_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Vec<Attribute>,
    #[prost(message, repeated, tag = "11")]
    pub(super) moments: Vec<Moment>,
    #[prost(message, optional, tag = "15")]
    pub(super) status: Option<Status>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
pub(super) enum Kind {
    Unspecified = 0,
    Internal = 1,
    Client = 3,
    Consumer = 5,
}

/// `Span.Event`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Moment {
    #[prost(fixed64, tag = "1")]
    pub(super) unix_nano: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Status {
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(enumeration = "Code", tag = "3")]
    pub(super) code: i32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
pub(super) enum Code {
    Unset = 0,
    Error = 2,
}

/// `KeyValue`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<Value>,
}

/// `AnyValue`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Value {
    #[prost(oneof = "Any", tags = "1, 3, 5")]
    pub(super) any: Option<Any>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Any {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
    #[prost(message, tag = "5")]
    List(List),
}

/// `ArrayValue`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct List {
    #[prost(message, repeated, tag = "1")]
    values: Vec<Value>,
}

/// `ExportTraceServiceResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct Response {
    #[prost(message, optional, tag = "1")]
    partial: Option<PartialSuccess>,
}

/// `ExportTracePartialSuccess`.
#[derive(Clone, PartialEq, prost::Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    why: String,
}

/// `google.rpc.Status`, the body of an answer that is an error.
#[derive(Clone, PartialEq, prost::Message)]
struct Error {
    #[prost(string, tag = "2")]
    message: String,
}

pub(super) fn text(key: &str, text: impl Into<String>) -> Attribute {
    attribute(key, Any::Text(text.into()))
}

pub(super) fn number(key: &str, number: impl TryInto<i64>) -> Attribute {
    attribute(key, Any::Number(number.try_into().unwrap_or(i64::MAX)))
}

pub(super) fn list(key: &str, texts: impl IntoIterator<Item: ToString>) -> Attribute {
    let value = |text: String| Value { any: Some(Any::Text(text)) };
    attribute(key, Any::List(List { values: texts.into_iter().map(|text| value(text.to_string())).collect() }))
}

fn attribute(key: &str, any: Any) -> Attribute {
    Attribute { key: key.to_owned(), value: Some(Value { any: Some(any) }) }
}

/// One request. Spans are grouped by where they happened: on a replica, or, without one, in the cluster as a whole.
pub(super) fn encode(cluster: &str, spans: &[(Option<VmName>, Span)]) -> Bytes {
    let mut groups: BTreeMap<Option<&VmName>, Vec<Span>> = BTreeMap::new();
    for (on, span) in spans {
        groups.entry(on.as_ref()).or_default().push(span.clone());
    }
    let (name, version) = (env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let resource = |(on, spans): (Option<&VmName>, Vec<Span>)| {
        let service = [text("service.name", &name), text("service.namespace", cluster)].into_iter();
        let instance = on.map(|replica| text("service.instance.id", replica.as_str()));
        let attributes = service.chain([text("service.version", &version)]).chain(instance).collect();
        let scope = Some(Scope { name: name.clone(), version: version.clone() });
        ResourceSpans { resource: Some(Resource { attributes }), scopes: vec![ScopeSpans { scope, spans }] }
    };
    Request { resources: groups.into_iter().map(resource).collect() }.encode_to_vec().into()
}

/// What a collector that took the request says of it: how many spans it refused all the same, and why.
pub(super) fn refused(answer: &[u8]) -> Option<(i64, String)> {
    // An answer that is not understood, or was cut off, is none: the status has said that it was taken.
    let partial = Response::decode(answer).ok()?.partial?;
    (partial.rejected > 0).then_some((partial.rejected, partial.why))
}

/// What a collector, or whoever answers in its place, says of an error.
pub(super) fn reason(answer: &[u8]) -> String {
    let told = Error::decode(answer).ok().map(|error| error.message).filter(|message| !message.is_empty());
    told.unwrap_or_else(|| String::from_utf8_lossy(answer).trim().to_owned())
}
