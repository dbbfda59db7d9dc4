//! A notification as bytes: a cloud event in JSON, or the body of an incoming webhook of Slack and similar services.

use serde_json::json;

use super::encoding::percent;
use super::message::OutgoingMessage;
use super::receiver::Format;
use crate::replica::clock::rfc3339;
use allclear_core::model::notification::NotificationKind;

impl Format {
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::CloudEvents => "application/cloudevents+json; charset=utf-8",
            Self::Slack => "application/json",
        }
    }

    pub(super) fn body(self, message: &OutgoingMessage) -> Vec<u8> {
        let body = match self {
            Self::CloudEvents => json!({
                "specversion": "1.0",
                "id": message.id,
                "source": format!("/allclear/{}", percent(&message.cluster)),
                "type": kind(message.topic),
                "subject": message.subject,
                "time": rfc3339(message.at),
                "datacontenttype": "application/json",
                "data": message.data,
            }),
            Self::Slack => json!({ "text": escaped(&message.text) }),
        };
        body.to_string().into_bytes()
    }
}

/// The number grows with changes that could break a reader of the data.
const fn kind(topic: NotificationKind) -> &'static str {
    match topic {
        NotificationKind::Announced => "allclear.event.announced.v1",
        NotificationKind::Blocked => "allclear.event.blocked.v1",
        NotificationKind::Takeover => "allclear.cluster.takeover.v1",
        NotificationKind::AllClear => "allclear.event.all_clear.v1",
        NotificationKind::Started => "allclear.event.started.v1",
        NotificationKind::Closed => "allclear.event.closed.v1",
        NotificationKind::RestoreFailed => "allclear.member.restore_failed.v1",
        NotificationKind::ChannelStalled => "allclear.replica.channel_stalled.v1",
        NotificationKind::QuorumLost => "allclear.cluster.quorum_lost.v1",
        NotificationKind::Resolved => "allclear.cluster.resolved.v1",
        NotificationKind::Unresolved => "allclear.event.unresolved.v1",
    }
}

/// Escapes the three characters with a meaning in Slack's format, and makes one line.
fn escaped(text: &str) -> String {
    text.replace(char::is_control, " ").replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;
    use allclear_core::model::time::Timestamp;

    fn body(format: Format) -> Value {
        let message = OutgoingMessage {
            id: "A-1@7/started".into(),
            topic: NotificationKind::Started,
            cluster: "orders & co".into(),
            subject: "A-1".into(),
            at: Timestamp(1_767_225_600_000),
            text: "orders & co: <b>\n has\u{7} started".into(),
            data: Map::from_iter([("text".to_owned(), "said".into())]),
        };
        serde_json::from_slice(&format.body(&message)).unwrap()
    }

    #[test]
    fn a_cloud_event_has_what_it_must_have() {
        let expected = json!({
            "specversion": "1.0", "id": "A-1@7/started", "source": "/allclear/orders%20%26%20co",
            "type": "allclear.event.started.v1", "subject": "A-1", "time": "2026-01-01T00:00:00.000Z",
            "datacontenttype": "application/json", "data": { "text": "said" },
        });
        assert_eq!(body(Format::CloudEvents), expected);
    }

    #[test]
    fn a_chat_is_told_one_sentence_without_markup_of_its_own() {
        assert_eq!(body(Format::Slack), json!({ "text": "orders &amp; co: &lt;b&gt;  has  started" }));
    }

    #[test]
    fn every_type_is_named_for_its_topic() {
        for topic in NotificationKind::ALL {
            assert!(kind(topic).split('.').any(|part| part == topic.as_str()), "{topic}");
        }
    }
}
