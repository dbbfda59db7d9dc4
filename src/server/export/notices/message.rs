//! A notification as one sentence for people and as data for programs.

use serde_json::{Map, Value, json};

use super::pending::PendingNotifications;
use crate::replica::clock::rfc3339;
use crate::replica::view::warning;
use allclear_core::model::notification::{Notification, NotificationKind, NotificationSubject};
use allclear_core::model::time::Timestamp;

/// Fields of an event's status in a message, without the fields that grow with time.
const SHOWN: [&str; 17] = [
    "id",
    "type",
    "source",
    "resources",
    "status",
    "not_before",
    "description",
    "duration_s",
    "stage",
    "treatment",
    "rule",
    "revision",
    "blocker",
    "approvals",
    "outcome",
    "start_cause",
    "measures",
];
/// The maximal number of approvals in a message; the last are kept.
const APPROVALS: usize = 3;

pub(super) struct OutgoingMessage {
    pub(super) id: String,
    pub(super) topic: NotificationKind,
    pub(super) cluster: String,
    pub(super) subject: String,
    pub(super) at: Timestamp,
    pub(super) text: String,
    pub(super) data: Map<String, Value>,
}

pub(super) fn of(notice: &Notification, board: &PendingNotifications) -> OutgoingMessage {
    let cluster = &board.cluster;
    let (subject, event) = match &notice.subject {
        NotificationSubject::Event(id) => (id.to_string(), shown(id.as_str(), board)),
        NotificationSubject::Member(member) => (member.path(), Value::Null),
        NotificationSubject::Replica(name) => (name.to_string(), Value::Null),
        NotificationSubject::Cluster => (cluster.node.cluster.clone(), Value::Null),
    };
    let sentence = board.own_text(notice).unwrap_or_else(|| match &notice.subject {
        NotificationSubject::Event(_) => of_event(notice, &event),
        NotificationSubject::Member(member) => warning::restore_failed(&cluster.state(), member)
            .unwrap_or_else(|| format!("the restore of {member} failed, and the member is back in service meanwhile")),
        NotificationSubject::Replica(name) => format!(
            "the metadata endpoint of {name} has returned no document since {}, so {name} receives no events",
            rfc3339(notice.at)
        ),
        NotificationSubject::Cluster => notice.kind.to_string(),
    });
    let text = format!("{}: {sentence}", cluster.node.cluster);
    let mut data = Map::new();
    data.insert("text".into(), text.clone().into());
    data.insert("cluster".into(), cluster.node.cluster.clone().into());
    data.insert("topic".into(), notice.kind.as_str().into());
    data.insert("told_by".into(), cluster.node.name.to_string().into());
    if let NotificationSubject::Replica(name) = &notice.subject {
        data.insert("replica".into(), name.to_string().into());
    }
    if let NotificationSubject::Member(member) = &notice.subject {
        data.insert("member".into(), member.path().into());
    }
    if !event.is_null() {
        data.insert("event".into(), event);
    }
    OutgoingMessage {
        id: notice.id.clone(),
        topic: notice.kind,
        cluster: cluster.node.cluster.clone(),
        subject,
        at: notice.at,
        text,
        data,
    }
}

fn shown(id: &str, board: &PendingNotifications) -> Value {
    let event = board.view.event(id).and_then(|event| serde_json::to_value(event).ok());
    let Some(Value::Object(mut event)) = event else { return json!({ "id": id }) };
    event.retain(|key, _| SHOWN.contains(&key.as_str()));
    if let Some(Value::Array(approvals)) = event.get_mut("approvals") {
        approvals.drain(..approvals.len().saturating_sub(APPROVALS));
    }
    Value::Object(event)
}

/// The sentence of an event, from the facts known at sending, which may be later than the notification.
fn of_event(notice: &Notification, event: &Value) -> String {
    let word = |key: &str| event[key].as_str().unwrap_or("unknown").to_owned();
    let vms: Vec<&str> = event["resources"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let what = format!("{} of {} (event {})", word("type"), vms.join(", "), word("id"));
    match notice.kind {
        NotificationKind::Announced => {
            let not_before = event["not_before"].as_str().map_or_else(String::new, |at| format!(", not before {at}"));
            format!("{what} is announced by {}{not_before}", word("source"))
        }
        NotificationKind::Blocked => {
            let told = |key: &str| event["blocker"][key].as_str().unwrap_or_default().to_owned();
            let (message, next, resolved_by) = (told("message"), told("next"), told("resolved_by"));
            match event["blocker"]["until"].as_str() {
                _ if message.is_empty() => format!("{what} was blocked for a long time"),
                Some(until) => format!("{what} is blocked: {message}; {next} ({until}); who can help: {resolved_by}"),
                None => format!("{what} is blocked: {message}; {next}; who can help: {resolved_by}"),
            }
        }
        NotificationKind::Takeover => {
            format!("{what}: {} approved the event alone, without a quorum", accepted(event, "approver"))
        }
        NotificationKind::AllClear => {
            let (by, reason) = (accepted(event, "approver"), accepted(event, "reason"));
            format!("{by} gave the all-clear for {what} ({reason})")
        }
        NotificationKind::Started => format!("{what} has started ({})", word("start_cause")),
        NotificationKind::Closed => format!("{what} is over, and no restore is outstanding ({})", word("outcome")),
        NotificationKind::RestoreFailed | NotificationKind::ChannelStalled | NotificationKind::QuorumLost => what,
    }
}

/// A field of the accepted approval, or of the last approval.
fn accepted(event: &Value, key: &str) -> String {
    let approvals = event["approvals"].as_array();
    let mut all = approvals.into_iter().flatten().rev();
    let is_accepted = |approval: &&Value| approval["outcome"] == "accepted";
    let found = all.clone().find(is_accepted).or_else(|| all.next());
    found.and_then(|approval| approval[key].as_str()).unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use allclear_core::model::id::EventId;

    fn told(topic: NotificationKind, event: &Value) -> String {
        let notice = Notification {
            at: Timestamp(0),
            kind: topic,
            subject: NotificationSubject::Event(EventId::new("e")),
            id: "i".into(),
        };
        of_event(&notice, event)
    }

    #[test]
    fn every_topic_is_a_sentence_with_what_is_known() {
        let event = json!({
            "id": "A-1", "type": "Reboot", "source": "User", "resources": ["db-0", "db-1"],
            "not_before": "2026-01-01T00:00:00Z", "start_cause": "approved", "outcome": "completed",
            "blocker": { "message": "the drain hook runs", "next": "the hook ends", "resolved_by": "the hook" },
            "approvals": [{ "approver": "db-2", "reason": "prepared", "outcome": "accepted" },
                          { "approver": "db-1", "reason": "takeover", "outcome": "unknown" }],
        });
        let what = "Reboot of db-0, db-1 (event A-1)";
        let by = "is announced by User, not before 2026-01-01T00:00:00Z";
        assert_eq!(told(NotificationKind::Announced, &event), format!("{what} {by}"));
        let waits = "is blocked: the drain hook runs; the hook ends; who can help: the hook";
        assert_eq!(told(NotificationKind::Blocked, &event), format!("{what} {waits}"));
        assert_eq!(told(NotificationKind::AllClear, &event), format!("db-2 gave the all-clear for {what} (prepared)"));
        assert_eq!(told(NotificationKind::Started, &event), format!("{what} has started (approved)"));
        assert_eq!(
            told(NotificationKind::Closed, &event),
            format!("{what} is over, and no restore is outstanding (completed)")
        );
        assert_eq!(told(NotificationKind::Closed, &json!({ "id": "e" })).matches("unknown").count(), 2);
    }
}
