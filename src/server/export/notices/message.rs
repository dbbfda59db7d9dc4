//! A notification as a message: one sentence for people and data for programs.

use serde_json::{Map, Value, json};

use super::pending::PendingNotifications;
use super::sentence::{further_help, of_event};
use crate::replica::clock::rfc3339;
use crate::replica::view::{primaries, warning};
use allclear_core::model::id::VmName;
use allclear_core::model::isolation::ImdsHealth;
use allclear_core::model::notification::{Notification, NotificationKind, NotificationSubject};
use allclear_core::model::time::Timestamp;
use allclear_core::planning_input::PlanningInput;
use allclear_wire::pb::allclear::operator::v1 as operator;

/// Fields of an event's status in a message, without the fields that grow with time.
const SHOWN: [&str; 21] = [
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
    "missing_hooks",
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
        NotificationSubject::Replica(name) => {
            let (_, input) = board.view.inputs();
            let why = board.metrics.metadata_failure.why().map(|why| format!("{}: {why}", cluster.node.name));
            stalled(name, notice.at, why.filter(|_| *name == input.me || is_blind(&input)), is_blind(&input))
        }
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

/// The sentence of a replica without documents, with the reason as far as the sender knows a reason.
fn stalled(name: &VmName, since: Timestamp, why: Option<String>, is_blind: bool) -> String {
    let why = why.map_or_else(String::new, |why| format!(" ({why})"));
    let since = rfc3339(since);
    let blind = if is_blind {
        "; no reachable replica of the cluster receives documents, so nobody sees new events, and Azure starts each event \
         when its notice ends"
    } else {
        ""
    };
    format!(
        "the metadata endpoint of {name} has returned no document since {since}, so {name} receives no events{why}{blind}"
    )
}

/// Whether no reachable member receives documents.
fn is_blind(input: &PlanningInput) -> bool {
    let sees = |name: &VmName| {
        input.peers.get(name).is_some_and(|contact| contact.reachable && contact.imds == ImdsHealth::Healthy)
    };
    !input.members.iter().any(sees)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_without_any_document_is_told_otherwise_than_one_replica() {
        let told =
            |why: Option<&str>, is_blind| stalled(&VmName::new("db-1"), Timestamp(0), why.map(Into::into), is_blind);
        let one = "the metadata endpoint of db-1 has returned no document since 1970-01-01T00:00:00.000Z, so db-1 receives \
                   no events";
        assert_eq!(told(None, false), one);
        let all = told(Some("db-0: status 403"), true);
        assert!(all.starts_with(&format!("{one} (db-0: status 403); no reachable replica")), "{all}");
    }
}
