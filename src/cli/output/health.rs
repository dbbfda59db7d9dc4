//! `allclear status --check`, for monitoring systems: one line with the worst severity.

use std::time::Duration;

use super::status;
use super::text::{group_faults, missing, what};
use allclear_server::replica::clock::from_rfc3339;
use allclear_server::replica::sanitize::sanitize;
use allclear_server::replica::view::advice::blockers;
use allclear_server::replica::view::hook_label;
use allclear_server::replica::view::warning::{NO_DOCUMENTS, SECOND_APPROVER};
use allclear_wire::pb::allclear::operator::v1 as shown;

const SECOND_APPROVER_ALARMS_FOR: Duration = Duration::from_hours(24);

const BLOCKED_FAILOVER_ALARMS_AFTER: Duration = Duration::from_secs(30);

/// The severities of monitoring systems, from good to bad.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::cli) enum Health {
    Ok,
    /// A person should look; nothing is in danger yet.
    Warning,
    /// The cluster cannot do its work, or an event waits for a person.
    Critical,
}

/// The line, without control characters.
pub(in crate::cli) fn line(status: &shown::Status) -> String {
    let (health, reasons) = judged(status);
    let word = match health {
        Health::Ok => "OK",
        Health::Warning => "WARNING",
        Health::Critical => "CRITICAL",
    };
    let open = match status.events.len() {
        0 => "no open events".into(),
        1 => "one open event".into(),
        count => format!("{count} open events"),
    };
    let all = if reasons.is_empty() { open } else { reasons.join("; ") };
    format!("{word}: cluster {}: {}\n", sanitize(&status.cluster), sanitize(&all))
}

pub(in crate::cli) fn health(status: &shown::Status) -> Health {
    judged(status).0
}

/// The worst of the reasons, and all reasons, the worst in front.
fn judged(status: &shown::Status) -> (Health, Vec<String>) {
    let mut reasons = critical(status);
    let health = if reasons.is_empty() { Health::Ok } else { Health::Critical };
    let warnings = warnings(status);
    let health = if warnings.is_empty() { health } else { health.max(Health::Warning) };
    reasons.extend(warnings);
    (health, reasons)
}

fn critical(status: &shown::Status) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(why) = &status.outside_because {
        all.push(format!("{} takes no part: {why}", status.replica));
    } else if !status.quorum {
        let voters = status.replicas.iter().filter(|replica| replica.voter).count();
        let others = if voters > 2 { "; the other replicas may act" } else { "" };
        all.push(format!(
            "no quorum: {} begins no hook, and approves only what it may approve alone{others}",
            status.replica
        ));
        // The notice goes on without a quorum.
        let waiting = status.events.iter().filter(|event| event.drill.is_none() && event.not_before.is_some());
        all.extend(waiting.filter(|event| matches!(event.stage.as_str(), "announced" | "preparing")).map(|event| {
            format!(
                "{} is open, and its notice ends at {}",
                what(event),
                event.not_before.as_deref().unwrap_or_default()
            )
        }));
    }
    let sees = |replica: &shown::Replica| replica.member && replica.reachable && replica.metadata == "healthy";
    if !status.replicas.iter().any(sees) {
        all.push("nobody sees events: no metadata endpoint answers".into());
    }
    let faults =
        status.groups.iter().flat_map(|group| group_faults(group).map(|fault| format!("{} {fault}", group.name)));
    all.extend(faults);
    for event in status.events.iter().filter(|event| event.drill.is_none()) {
        if let Some(blocker) = blockers(event).find(|it| it.needs_person && it.code != "no_quorum") {
            all.push(format!("{} waits for a person: {}", what(event), blocker.message));
        }
        all.extend(blockers(event).filter(|it| is_blocked_failover(status, event, it)).map(|it| waits(event, it)));
        if !event.missing_hooks.is_empty() {
            all.push(format!("{} started before {}", what(event), missing(event)));
        }
    }
    all.extend(
        unrestored(status).map(|(member, why)| why.map_or(format!("{member} could not be restored"), Into::into)),
    );
    all
}

/// The primary of a group stays on a VM that goes down, unless the failover succeeds in time. A hook may be blocked for a
/// moment.
fn is_blocked_failover(status: &shown::Status, event: &shown::Event, blocker: &shown::Blocker) -> bool {
    let is_failover = |hook: &&String| hook_label(hook, "").split('#').next() == Some("failover");
    let is_new = |name: &String| {
        let since = event.hooks.iter().rfind(|hook| hook.hook == *name).and_then(|hook| hook.blocked_since.as_ref());
        let age = since
            .and_then(|since| from_rfc3339(since))
            .zip(from_rfc3339(&status.now))
            .map(|(since, now)| now.since(since));
        age.is_some_and(|age| age < BLOCKED_FAILOVER_ALARMS_AFTER)
    };
    blocker.code == "hook_blocked" && blocker.hooks.iter().filter(is_failover).any(|name| !is_new(name))
}

fn waits(event: &shown::Event, blocker: &shown::Blocker) -> String {
    format!("{} waits: {}", what(event), blocker.message)
}

/// The members whose restore fails, each with the warning about it.
fn unrestored(status: &shown::Status) -> impl Iterator<Item = (String, Option<&str>)> {
    let is_failing = |member: &&shown::MemberState| {
        member.state == "returning" && member.owed.as_ref().is_some_and(|owed| owed.contains("failed"))
    };
    status.members.iter().filter(is_failing).map(|member| {
        let member = format!("{} on {}", member.workload, member.vm);
        let mut texts = status.warnings.iter().map(|warning| warning.text.as_str());
        let why = texts.find(|text| text.starts_with(&format!("{member} is not back")));
        (member, why)
    })
}

fn warnings(status: &shown::Status) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(pause) = &status.paused {
        all.push(format!("all approvals are paused by {} until {}", pause.by, pause.until));
        let starts = pause.starts_before.iter().filter_map(|start| {
            let event = status.events.iter().find(|event| event.id == start.event)?;
            Some(format!("{} starts all the same at {}", what(event), start.at))
        });
        all.extend(starts);
    }
    for event in &status.events {
        let blocked = blockers(event).filter(|it| matches!(it.code.as_str(), "hook_blocked" | "budget"));
        let is_told = |it: &&shown::Blocker| is_blocked_failover(status, event, it) && event.drill.is_none();
        all.extend(blocked.filter(|it| !is_told(it)).map(|it| waits(event, it)));
        let is_over =
            |end: &&String| from_rfc3339(end).zip(from_rfc3339(&status.now)).is_some_and(|(end, now)| end <= now);
        let is_approved = event.blocker.as_ref().is_some_and(|it| it.code == "waiting_for_platform");
        if let Some(end) = event.not_before.as_ref().filter(|_| is_approved).filter(is_over) {
            all.push(format!("{} is approved, and Azure has not started it: its notice ended at {end}", what(event)));
        }
        if let Some(hold) = &event.hold {
            let start = hold.starts_before.first().map(|start| format!(", and starts all the same at {}", start.at));
            all.push(format!(
                "{} is held by {} until {}{}",
                what(event),
                hold.by,
                hold.until,
                start.unwrap_or_default()
            ));
        }
    }
    // The warning of the asked replica has the cause, too.
    let is_told = status.warnings.iter().any(|warning| warning.text.starts_with(NO_DOCUMENTS));
    for replica in status.replicas.iter().filter(|replica| replica.member) {
        if !replica.reachable {
            all.push(format!("{} is unreachable", replica.name));
        } else if replica.metadata != "healthy" && !(is_told && replica.name == status.replica) {
            all.push(format!("{} receives no documents", replica.name));
        }
        let clock = replica.clock_difference_ms.and_then(status::clock);
        all.extend(clock.map(|clock| format!("{}: {clock}", replica.name)));
    }
    let unready = status.members.iter().filter(|member| member.state == "not_ready");
    let unready = unready.map(|member| format!("{} on {} is not ready", member.workload, member.vm));
    // The warning has the reason, too.
    all.extend(unready.filter(|text| !status.warnings.iter().any(|warning| warning.text.starts_with(text))));
    let told: Vec<&str> = unrestored(status).filter_map(|(_, why)| why).collect();
    let texts = status.warnings.iter().filter(|warning| !is_past(status, warning)).map(|warning| warning.text.clone());
    all.extend(texts.filter(|text| !told.contains(&text.as_str())));
    all
}

/// A second approval cannot be mended: it alarms while its event is open, and for a day.
fn is_past(status: &shown::Status, warning: &shown::Warning) -> bool {
    let is_open = status.events.iter().any(|event| event.id == warning.event);
    let age = from_rfc3339(&status.now).zip(from_rfc3339(&warning.since)).map(|(now, since)| now.since(since));
    warning.text.starts_with(SECOND_APPROVER) && !is_open && age.is_some_and(|age| age > SECOND_APPROVER_ALARMS_FOR)
}

#[cfg(test)]
mod tests;
