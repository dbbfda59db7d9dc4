//! What a replica says, as text for people.

use std::fmt::Write as _;
use std::time::Duration;

use crate::replica::differences::WARN_ABOVE;
use crate::wire::pb::allclear::operator::v1 as shown;

pub(super) fn status(status: &shown::Status) -> String {
    let mut text = String::new();
    let leader = status.leader.as_deref().unwrap_or("nobody");
    let quorum = if status.quorum { "quorum" } else { "NO QUORUM" };
    line(
        &mut text,
        &format!(
            "{} of {}: {}, {leader} leads, term {}, {quorum}",
            status.replica, status.cluster, status.role, status.term
        ),
    );
    if let Some(why) = &status.outside_because {
        line(&mut text, &format!("takes no part: {why}"));
    }
    if let Some(pause) = &status.paused {
        line(&mut text, &format!("ALL APPROVALS PAUSED by {} until {}: {}", pause.by, pause.until, pause.reason));
        if !pause.unacknowledged_by.is_empty() {
            line(&mut text, &format!("  not acknowledged yet by {}", pause.unacknowledged_by.join(", ")));
        }
    }
    for replica in &status.replicas {
        let reachable = if replica.reachable { "reachable" } else { "UNREACHABLE" };
        let age =
            replica.last_document_age_ms.map_or("no document yet".into(), |age| format!("last document {age} ms ago"));
        let standing = match (replica.member, replica.configured) {
            (false, _) => "  (configured, but no member)",
            (true, false) => "  (a member, but not in cluster.replicas)",
            (true, true) => "",
        };
        let clock = replica.clock_difference_ms.map(clock).unwrap_or_default();
        let doubt = if replica.suspect { "  (has yet to give account of what it did alone)" } else { "" };
        let (name, metadata) = (&replica.name, &replica.metadata);
        let row = format!("  {name:<16} {reachable:<12} metadata {metadata:<8} {age}{clock}{standing}{doubt}");
        line(&mut text, &row);
    }
    for workload in &status.workloads {
        let group = workload.group.as_deref().unwrap_or("-");
        line(
            &mut text,
            &format!("  {} on {} (group {group}): {}", workload.name, workload.vm, workload.phases.join(", ")),
        );
    }
    for warning in &status.warnings {
        line(&mut text, &format!("WARNING since {}: {}", warning.since, warning.text));
    }
    if status.events.is_empty() {
        line(&mut text, "no open events");
    }
    for open in &status.events {
        line(&mut text, &summary(open));
        if let Some(blocker) = &open.blocker {
            line(&mut text, &format!("    {}", blocker.message));
        }
    }
    text
}

/// Told when it is worth a warning.
fn clock(ahead_ms: i64) -> String {
    let apart = Duration::from_millis(ahead_ms.unsigned_abs());
    let which = if ahead_ms > 0 { "ahead of" } else { "behind" };
    if apart > WARN_ABOVE {
        format!(", CLOCK {:.1} s {which} the leader's", apart.as_secs_f64())
    } else {
        String::new()
    }
}

pub(super) fn members(list: &shown::MemberList) -> String {
    let mut text = String::new();
    if list.members.is_empty() {
        line(&mut text, "no members: the cluster is not formed yet, or nobody answers");
    }
    for member in &list.members {
        let vote = if member.voter { "voter" } else { "learner" };
        let leads = if member.leader { "leads" } else { "" };
        let reachable = member.unreachable_because.as_deref().unwrap_or("reachable");
        let (name, address, node) = (&member.name, &member.address, &member.node);
        line(&mut text, &format!("{name:<16} {address:<21} {vote:<7} {leads:<5} node {node:<16}  {reachable}"));
    }
    text
}

pub(super) fn events(list: &shown::EventList) -> String {
    let mut text = String::new();
    if list.events.is_empty() {
        line(&mut text, "no events yet");
    }
    for event in &list.events {
        line(&mut text, &summary(event));
    }
    text
}

pub(super) fn event(event: &shown::Event) -> String {
    let mut text = String::new();
    line(&mut text, &summary(event));
    if !event.description.is_empty() {
        line(&mut text, &event.description);
    }
    let not_before = event.not_before.as_deref().unwrap_or("unknown");
    let treatment = event.treatment.as_deref().unwrap_or("not chosen yet");
    let rule = event.rule.as_deref().unwrap_or("-");
    line(
        &mut text,
        &format!("not before {not_before}; treatment {treatment} (rule: {rule}); revision {}", event.revision),
    );
    if let Some(blocker) = &event.blocker {
        let until = blocker.until.as_deref().map(|until| format!(" (until {until})")).unwrap_or_default();
        line(&mut text, &format!("waits: {}{until}", blocker.message));
        line(&mut text, &format!("next: {}; can be resolved by: {}", blocker.next, blocker.resolved_by));
    }
    if let Some(hold) = &event.hold {
        line(&mut text, &format!("held by {} until {}: {}", hold.by, hold.until, hold.reason));
    }
    for step in &event.timeline {
        let who = step.who.as_deref().filter(|who| !step.what.contains(who));
        let who = who.map(|who| format!(" ({who})")).unwrap_or_default();
        line(&mut text, &format!("  {}  {}{who}", step.at, step.what));
    }
    text
}

/// One line for one event.
pub(super) fn summary(event: &shown::Event) -> String {
    let end = match (&event.outcome, &event.start_cause) {
        (Some(outcome), Some(cause)) => format!(", {outcome}, started because: {cause}"),
        (Some(outcome), None) => format!(", {outcome}"),
        (None, _) => String::new(),
    };
    let drill = event.drill.as_ref().map(|drill| format!(" (DRILL, {})", drill.mode)).unwrap_or_default();
    format!(
        "{}{drill} {} by {} of {}: {}{end}",
        event.id,
        event.r#type,
        event.source,
        event.resources.join(", "),
        event.stage
    )
}

fn line(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}
