//! One trace in the messages of the OpenTelemetry protocol (`proto/opentelemetry`).

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message as _;

use allclear_core::model::id::VmName;
use allclear_wire::pb::opentelemetry::traces::{
    AnyValue, ArrayValue, Error, ExportTraceServiceRequest, ExportTraceServiceResponse, InstrumentationScope, Resource,
    ResourceSpans, ScopeSpans,
};
pub(super) use allclear_wire::pb::opentelemetry::traces::{
    KeyValue as Attribute, Span, Status, any_value::Value as Any, span::Event as Moment, span::SpanKind as Kind,
    status::StatusCode as Code,
};

pub(super) fn text(key: &str, text: impl Into<String>) -> Attribute {
    attribute(key, Any::StringValue(text.into()))
}

pub(super) fn number(key: &str, number: impl TryInto<i64>) -> Attribute {
    attribute(key, Any::IntValue(number.try_into().unwrap_or(i64::MAX)))
}

pub(super) fn list(key: &str, texts: impl IntoIterator<Item: ToString>) -> Attribute {
    let value = |text: String| AnyValue { value: Some(Any::StringValue(text)) };
    let values = texts.into_iter().map(|text| value(text.to_string())).collect();
    attribute(key, Any::ArrayValue(ArrayValue { values }))
}

fn attribute(key: &str, any: Any) -> Attribute {
    Attribute { key: key.to_owned(), value: Some(AnyValue { value: Some(any) }) }
}

/// Encodes one request. Spans are grouped by replica, or, without a replica, for the cluster as a whole.
pub(super) fn encode(cluster: &str, spans: &[(Option<VmName>, Span)]) -> Bytes {
    let mut groups: BTreeMap<Option<&VmName>, Vec<Span>> = BTreeMap::new();
    for (on, span) in spans {
        groups.entry(on.as_ref()).or_default().push(span.clone());
    }
    let (name, version) = ("allclear".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let resource = |(on, spans): (Option<&VmName>, Vec<Span>)| {
        let service = [text("service.name", &name), text("service.namespace", cluster)].into_iter();
        let instance = on.map(|replica| text("service.instance.id", replica.as_str()));
        let attributes = service.chain([text("service.version", &version)]).chain(instance).collect();
        let scope = Some(InstrumentationScope { name: name.clone(), version: version.clone() });
        ResourceSpans { resource: Some(Resource { attributes }), scope_spans: vec![ScopeSpans { scope, spans }] }
    };
    ExportTraceServiceRequest { resource_spans: groups.into_iter().map(resource).collect() }.encode_to_vec().into()
}

/// The number of spans that an accepting collector rejected regardless, and the reason.
pub(super) fn refused(answer: &[u8]) -> Option<(i64, String)> {
    // An unreadable or truncated answer counts as empty: the status already means acceptance.
    let partial = ExportTraceServiceResponse::decode(answer).ok()?.partial_success?;
    (partial.rejected_spans > 0).then_some((partial.rejected_spans, partial.error_message))
}

/// The reason in an error answer, from the collector or from a server in front.
pub(super) fn reason(answer: &[u8]) -> String {
    let told = Error::decode(answer).ok().map(|error| error.message).filter(|message| !message.is_empty());
    told.unwrap_or_else(|| String::from_utf8_lossy(answer).trim().to_owned())
}
