//! A notification as a message: one sentence for people and data for programs.

use serde_json::{Map, Value, json};

use super::pending::PendingNotifications;
use super::sentence::{further_help, of_event};
use crate::replica::clock::rfc3339;
use crate::replica::view::{primaries, warning};
use allclear_core::model::notification::{Notification, NotificationKind, NotificationSubject};
use allclear_core::model::time::Timestamp;
use allclear_wire::pb::allclear::operator::v1 as operator;

/// Fields of an event's status in a message, without the fields that grow with time.
const SHOWN: [&str; 20] = [
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
    "other_blockers",
    "takes_down",
    "approvals",
    "outcome",
    "start_cause",
    "start_seen",
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
    let none = || (Value::Null, Vec::new());
    let (subject, (event, primaries)) = match &notice.subject {
        NotificationSubject::Event(id) => {
            let known = board.view.event(id.as_str());
            (id.to_string(), (shown(id.as_str(), known.as_ref()), known.map_or_else(Vec::new, |it| primaries(&it))))
        }
        NotificationSubject::Member(member) => (member.path(), none()),
        NotificationSubject::Replica(name) => (name.to_string(), none()),
        NotificationSubject::Cluster => (cluster.node.cluster.clone(), none()),
    };
    let sentence = board.own_text(notice).unwrap_or_else(|| match &notice.subject {
        NotificationSubject::Event(_) => of_event(notice, &event, &primaries),
        NotificationSubject::Member(member) if notice.kind == NotificationKind::Resolved => {
            format!("resolved: {member} no longer waits for a restore that failed")
        }
        NotificationSubject::Member(member) => warning::restore_failed(&cluster.state(), member)
            .unwrap_or_else(|| format!("the restore of {member} failed, and the member is back in service meanwhile")),
        NotificationSubject::Replica(name) if notice.kind == NotificationKind::Resolved => {
            format!("resolved: the metadata endpoint of {name} returns documents again")
        }
        NotificationSubject::Replica(name) => format!(
            "the metadata endpoint of {name} has returned no document since {}, so {name} receives no events",
            rfc3339(notice.at)
        ),
        NotificationSubject::Cluster => notice.kind.to_string(),
    });
    let more = further_help(notice, board.page.as_deref(), board.view.doctor())
        .map_or_else(String::new, |help| format!(". {help}"));
    let text = format!("{}: {sentence}{more}", cluster.node.cluster);
    let mut data = Map::new();
    data.insert("text".into(), text.clone().into());
    data.insert("cluster".into(), cluster.node.cluster.clone().into());
    data.insert("topic".into(), notice.kind.as_str().into());
    data.insert("told_by".into(), cluster.node.name.to_string().into());
    if let Some(closed) = notice.closes() {
        // Programs close their alarm by `resolves`.
        let key = if notice.kind == NotificationKind::Resolved { "resolves" } else { "leaves_unresolved" };
        data.insert(key.into(), closed.into());
    }
    if let Some(page) = &board.page {
        data.insert("page".into(), page.as_str().into());
    }
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

fn shown(id: &str, event: Option<&operator::Event>) -> Value {
    let event = event.and_then(|event| serde_json::to_value(event).ok());
    let Some(Value::Object(mut event)) = event else { return json!({ "id": id }) };
    event.retain(|key, _| SHOWN.contains(&key.as_str()));
    if let Some(Value::Array(approvals)) = event.get_mut("approvals") {
        approvals.drain(..approvals.len().saturating_sub(APPROVALS));
    }
    Value::Object(event)
}
