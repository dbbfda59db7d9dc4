//! The sentences of notifications about events, and the command for an operator who has to act.

use serde_json::Value;

use allclear_core::model::notification::{Notification, NotificationKind, NotificationSubject};

/// The sentence of an event, from the facts known at sending, which may be later than the notification.
pub(super) fn of_event(notice: &Notification, event: &Value, primaries: &[String]) -> String {
    let word = |key: &str| event[key].as_str().unwrap_or("unknown").to_owned();
    let vms: Vec<&str> = event["resources"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let what = format!("{} of {} (event {})", word("type"), vms.join(", "), word("id"));
    let down = primaries.iter().fold(String::new(), |told, primary| told + "; " + primary);
    match notice.kind {
        NotificationKind::Announced => {
            let not_before = event["not_before"].as_str().map_or_else(String::new, |at| format!(", not before {at}"));
            format!("{what} is announced by {}{not_before}{down}", word("source"))
        }
        NotificationKind::Blocked => match blocker_of(notice, event)["message"].as_str() {
            Some(message) => format!("{what} needs a person: {message}{down}"),
            None => format!("{what} needed a person for a while"),
        },
        NotificationKind::Resolved => {
            let (code, hook) = waited_for(notice);
            let of_hook = if hook.is_empty() { String::new() } else { format!(" ({hook})") };
            let stage = word("stage");
            format!(
                "resolved: {what} no longer waits because of {}{of_hook}; its stage is {stage}",
                code.replace('_', " ")
            )
        }
        NotificationKind::Unresolved => {
            let (done, lack) = (has_gone_on(event), lack(waited_for(notice)));
            format!("not resolved: {what} {done} although {lack}{down}. Check that the other members serve")
        }
        NotificationKind::Takeover => {
            format!("{what}: {} approved the event alone, without a quorum", accepted(event, "approver"))
        }
        NotificationKind::AllClear => {
            let (by, reason) = (accepted(event, "approver"), accepted(event, "reason"));
            format!("{by} gave the all-clear for {what} ({reason})")
        }
        NotificationKind::Started => {
            let (cause, unprepared) = (word("start_cause"), unprepared(event));
            let down = if cause == "approved" && unprepared.is_empty() { "" } else { &down };
            format!("{what} has started ({cause}){unprepared}{down}")
        }
        NotificationKind::Closed => {
            let outcome = word("outcome");
            let unseen =
                if outcome == "completed" && event["start_seen"] == false { "; no start was seen" } else { "" };
            format!("{what} is over, and no restore is outstanding ({outcome}{unseen})")
        }
        NotificationKind::RestoreFailed | NotificationKind::ChannelStalled | NotificationKind::QuorumLost => what,
    }
}

/// The hooks that were not done at the start, in the words of `allclear status --check`.
fn unprepared(event: &Value) -> String {
    let missing = event["missing_hooks"].as_array().into_iter().flatten();
    let missing: Vec<&str> = missing.filter_map(Value::as_str).collect();
    let were = match missing.len() {
        0 => return String::new(),
        1 => "was",
        _ => "were",
    };
    format!(", UNPREPARED: before the {} {were} done", missing.join(" and the "))
}

/// The course of an event after the end of a wait.
fn has_gone_on(event: &Value) -> &'static str {
    match (event["stage"].as_str(), event["outcome"].as_str()) {
        (Some("approved"), _) => "was approved",
        (Some("started"), _) => "has started",
        (_, Some("forgotten")) => "is forgotten, because no replica receives a document that counts,",
        (Some("restoring" | "closed"), _) => "is over",
        _ => "has gone on",
    }
}

/// The condition without which the event went on, from the code and the hook of the blocker.
fn lack((code, hook): (&str, &str)) -> String {
    match code {
        _ if !hook.is_empty() => format!("{hook} was not done ({})", code.replace('_', " ")),
        "hook_waiting" => "a replica had not registered its workloads".into(),
        "budget" => "other members of its groups were out of service".into(),
        "hold" => "an operator held the event and its hooks".into(),
        "posting" | "post_failed" | "views_differ" => "Azure had accepted no approval".into(),
        _ => format!("it still waited ({})", code.replace('_', " ")),
    }
}

/// The command to run and the page to open, for notifications on which an operator has to act.
pub(super) fn further_help(notice: &Notification, page: Option<&str>, doctor: &str) -> Option<String> {
    let command = match (notice.kind, &notice.subject) {
        (NotificationKind::Blocked, NotificationSubject::Event(id)) => {
            // A shell could read other characters in its own way.
            let is_plain = id.as_str().chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
            let id = if is_plain { format!(" {id}") } else { String::new() };
            format!("allclear explain{id}")
        }
        (NotificationKind::RestoreFailed, _) => "allclear workload list".into(),
        (NotificationKind::ChannelStalled | NotificationKind::QuorumLost, _) => doctor.into(),
        _ => return None,
    };
    let on = match (notice.kind, &notice.subject) {
        (_, NotificationSubject::Replica(name)) => name.to_string(),
        (NotificationKind::QuorumLost, _) => "each of the VMs".into(),
        _ => "one of the VMs".into(),
    };
    let opened = page.map_or_else(String::new, |page| format!(", or open {page}"));
    Some(format!("Run `{command}` on {on}{opened}"))
}

/// The blocker of a notification: its code and its hook. Empty where the notification has no blocker, or the blocker no
/// hook.
fn waited_for(notice: &Notification) -> (&str, &str) {
    let id = notice.closes().unwrap_or(&notice.id);
    let Some((_, what)) = id.split_once("/blocked/") else { return ("", "") };
    // A blocker that came back has a number at its end.
    let is_number = |end: &str| end.chars().all(|digit| digit.is_ascii_digit());
    let what = what.rsplit_once('/').filter(|(_, end)| is_number(end)).map_or(what, |(what, _)| what);
    what.split_once('/').unwrap_or((what, ""))
}

/// The blocker of the notification among the blockers of the event. The first blocker of the event, if that blocker is gone.
fn blocker_of<'a>(notice: &Notification, event: &'a Value) -> &'a Value {
    let (code, hook) = waited_for(notice);
    let others = event["other_blockers"].as_array().into_iter().flatten();
    let all: Vec<&Value> = std::iter::once(&event["blocker"]).chain(others).collect();
    let is_of_hook = |blocker: &&&Value| {
        let name = blocker["hooks"][0].as_str().unwrap_or_default();
        !name.is_empty() && hook.starts_with(name)
    };
    let same = all.iter().find(|blocker| blocker["code"] == code && (hook.is_empty() || is_of_hook(blocker)));
    same.or_else(|| all.iter().find(is_of_hook)).copied().unwrap_or(&event["blocker"])
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
    use allclear_core::model::id::{EventId, VmName};
    use allclear_core::model::time::Timestamp;
    use serde_json::json;

    fn notice(kind: NotificationKind) -> Notification {
        let subject = NotificationSubject::Event(EventId::new("e"));
        Notification { at: Timestamp(0), kind, subject, id: "i".into() }
    }

    fn told(topic: NotificationKind, event: &Value) -> String {
        of_event(&notice(topic), event, &[])
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
        assert_eq!(told(NotificationKind::Blocked, &event), format!("{what} needs a person: the drain hook runs"));
        assert_eq!(told(NotificationKind::AllClear, &event), format!("db-2 gave the all-clear for {what} (prepared)"));
        assert_eq!(told(NotificationKind::Started, &event), format!("{what} has started (approved)"));
        assert_eq!(
            told(NotificationKind::Closed, &event),
            format!("{what} is over, and no restore is outstanding (completed)")
        );
        let late = json!({ "id": "e", "type": "Reboot", "resources": ["db-0"], "start_cause": "notice_expired",
                           "missing_hooks": ["failover of pg on db-0", "drain of pg on db-0"] });
        assert_eq!(
            of_event(&notice(NotificationKind::Started), &late, &["db-0 holds the primary of orders-db".into()]),
            "Reboot of db-0 (event e) has started (notice_expired), UNPREPARED: before the failover of pg on db-0 and the \
             drain of pg on db-0 were done; db-0 holds the primary of orders-db"
        );
        let unseen = json!({ "id": "e", "outcome": "completed", "start_seen": false });
        assert!(told(NotificationKind::Closed, &unseen).ends_with("is outstanding (completed; no start was seen)"));
        assert_eq!(told(NotificationKind::Closed, &json!({ "id": "e" })).matches("unknown").count(), 2);
    }

    #[test]
    fn what_is_told_of_a_blocker_is_its_own_and_its_end_names_it() {
        let blocked = Notification {
            at: Timestamp(0),
            kind: NotificationKind::Blocked,
            subject: NotificationSubject::Event(EventId::new("A-1")),
            id: "A-1@7/blocked/hook_failed/db-0/pg/failover/retry-3".into(),
        };
        let of =
            |code: &str, message: &str, hooks: &[&str]| json!({ "code": code, "message": message, "hooks": hooks });
        let event = json!({
            "id": "A-1", "type": "Reboot", "resources": ["db-0"], "stage": "preparing",
            "blocker": of("hook_failed", "no disk", &["db-1/pg/drain"]),
            "other_blockers": [of("hold", "held", &[]), of("hook_failed", "no standby", &["db-0/pg/failover"])],
        });
        let what = "Reboot of db-0 (event A-1)";
        assert_eq!(
            of_event(&blocked, &event, &["db-0 holds the primary of orders-db".into()]),
            format!("{what} needs a person: no standby; db-0 holds the primary of orders-db")
        );
        let over = blocked.resolved(Timestamp(1));
        assert_eq!(over.closes(), Some(blocked.id.as_str()));
        let told = "no longer waits because of hook failed (db-0/pg/failover/retry-3); its stage is preparing";
        assert_eq!(of_event(&over, &event, &[]), format!("resolved: {what} {told}"));
        let started = json!({ "id": "A-1", "type": "Reboot", "resources": ["db-0"], "stage": "started" });
        let unresolved = Notification { kind: NotificationKind::Unresolved, ..over.clone() };
        assert_eq!(unresolved.closes(), Some(blocked.id.as_str()));
        let told = "has started although db-0/pg/failover/retry-3 was not done (hook failed). Check that the other members serve";
        assert_eq!(of_event(&unresolved, &started, &[]), format!("not resolved: {what} {told}"));
        let help = further_help(&blocked, Some("https://db.example.com/"), "").unwrap();
        assert_eq!(help, "Run `allclear explain a-1` on one of the VMs, or open https://db.example.com/");
        assert_eq!(further_help(&over, None, ""), None);
        let stalled = Notification { kind: NotificationKind::ChannelStalled, ..blocked.clone() };
        let stalled = Notification { subject: NotificationSubject::Replica(VmName::new("db-1")), ..stalled };
        assert_eq!(further_help(&stalled, None, "allclear doctor").unwrap(), "Run `allclear doctor` on db-1");
        // A blocker that came back has a number.
        let suspended =
            json!({ "id": "A-1", "blocker": of("hold", "held", &[]), "other_blockers": [of("budget", "full", &[])] });
        let again = Notification { id: "A-1@7/blocked/budget/2".into(), ..blocked };
        assert_eq!(blocker_of(&again, &suspended)["message"], "full");
    }
}
