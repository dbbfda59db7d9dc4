//! Warnings: conditions for an operator to check. Warnings block nothing.

mod membership;
mod own;

use allclear_core::schedule::groups::on_one_host;
use allclear_core::schedule::last_call;
use std::collections::BTreeSet;
use std::time::Duration;

pub(super) use self::membership::{FirstShown, half_removed, single_members};
pub use self::own::NO_DOCUMENTS;
pub(super) use self::own::{
    excess, failed_checks, no_documents, not_ready, of_certificate, other_vm_name, refused_registrations, unknown_roles,
};
use crate::clock::rfc3339;
use crate::clock_skew::ClockSkew;
use crate::policy_fingerprints::PolicyFingerprints;
use allclear_core::apply::report::{beyond_the_limit, implausible_notice_end};
use allclear_core::model::attempt::Outcome;
use allclear_core::model::event::Event;
use allclear_core::model::id::{GroupName, VmName};
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::slot::Slot;
use allclear_core::model::state::{OPEN_LIMIT, OPEN_LIMIT_OF_OTHERS, State};
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::{Member, Role};
use allclear_core::start_cause::is_second_approver;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// The number of second approvals shown, and of VMs named per event.
pub(super) const MOST: usize = 10;
/// The lead time of the warning about a last call over budget.
const TOLD_AHEAD: Duration = Duration::from_mins(2);
/// The beginning of the warning about an event that another approver approved.
pub const SECOND_APPROVER: &str = "another approver approved event";
const SHOWN_FOR: Duration = Duration::from_hours(7 * 24);

/// Warnings of recent events with a second approver, oldest first.
pub fn second_approvals(state: &State, now: Timestamp) -> Vec<shown::Warning> {
    let is_recent = |event: &&Event| event.over_at().is_none_or(|over| now.since(over) < SHOWN_FOR);
    let recent = state.closed_events().rev().take_while(is_recent).chain(state.open_events());
    let started = recent.filter_map(|event| Some((event, event.entered_at(Stage::Started)?)));
    let mut found: Vec<_> = started.filter(|(event, _)| is_second_approver(state, event)).collect();
    found.sort_by_key(|(_, started)| *started);
    let warning = |(event, started): (&Event, Timestamp)| shown::Warning {
        since: rfc3339(started),
        text: second_approver(event, started),
        event: event.announcement.id.to_string(),
    };
    found.into_iter().map(warning).collect()
}

/// The warning about announced events beyond the limit of open events, which this cluster does not handle; since the
/// last event within the limit.
pub fn events_beyond(state: &State) -> Option<shown::Warning> {
    let beyond = beyond_the_limit(state);
    let first = beyond.first()?;
    let text = format!(
        "{} announced events, {first} among them, are above the limit of {OPEN_LIMIT} open events of this cluster \
         ({OPEN_LIMIT_OF_OTHERS} for events without a VM of this cluster): allclear neither prepares nor approves \
         these events until other events close, and Azure starts the events when their notice ends; find the source \
         of so many events, and prepare for the events by hand",
        beyond.len()
    );
    let since = state.open_events().map(Event::first_seen).max().unwrap_or(state.now);
    Some(shown::Warning { since: rfc3339(since), text, event: String::new() })
}

/// Warnings of members with a failing restore.
pub(super) fn failed_restores(state: &State) -> impl Iterator<Item = shown::Warning> {
    let warning = |(member, slot): (&Member, &Slot)| {
        let since = rfc3339(state.failing_return(member)?.since);
        Some(shown::Warning { since, text: restore_failed(state, member)?, event: slot.by.to_string() })
    };
    state.slots.iter().filter_map(warning)
}

/// The warning about replicas with a policy or groups different from the other replicas.
pub(super) fn policies_differ(policies: &PolicyFingerprints) -> Option<shown::Warning> {
    let (since, odd) = policies.odd_ones()?;
    let odd: Vec<_> = odd.iter().map(ToString::to_string).collect();
    let text = format!(
        "the policy or the groups of {} differ from the other replicas: the leader's policy decides alone, so the \
         treatment of an event changes with the leader; compare the sections [policy] and [[group]] of `allclear \
         check` on all replicas",
        odd.join(" and ")
    );
    Some(shown::Warning { since: rfc3339(since), text, event: String::new() })
}

/// The warning when the platform's time, as shown by this replica's endpoint, differs from the cluster's time.
pub(super) fn platform_time_differs(differences: &ClockSkew) -> Option<shown::Warning> {
    let (since, ahead_ms) = differences.platform_differs()?;
    let (which, ends) = if ahead_ms > 0 { ("ahead of", "later") } else { ("behind", "earlier") };
    let apart = Duration::from_millis(ahead_ms.unsigned_abs()).as_secs_f64();
    let text = format!(
        "the cluster's time is {apart:.1} s {which} Azure's time, by the metadata endpoint of this VM, so notices end \
         {ends} than shown; if no other replica shows this warning, check whether another program answers \
         at the endpoint's address"
    );
    Some(shown::Warning { since: rfc3339(since), text, event: String::new() })
}

/// Warnings of events that take several members of a group at once.
pub(super) fn shared_hosts(state: &State) -> impl Iterator<Item = shown::Warning> {
    let of_event = move |event: &Event| {
        let warning = |(group, vms): (&GroupName, BTreeSet<VmName>)| {
            let vms: Vec<String> = vms.iter().map(ToString::to_string).collect();
            let text = format!(
                "{} of group {group} are on the same host, and one event takes them all: put the members of a group \
                 into different fault domains or zones",
                vms.join(" and ")
            );
            let (since, event) = (rfc3339(event.first_seen()), event.announcement.id.to_string());
            shown::Warning { since, text, event }
        };
        on_one_host(state, event).into_iter().map(warning).collect::<Vec<_>>()
    };
    state.open_events().flat_map(of_event)
}

/// Warnings of events near their last call while other members of the events' groups are out of service.
pub(super) fn overdrafts(state: &State, now: Timestamp) -> impl Iterator<Item = shown::Warning> {
    let is_near = move |event: &&Event| {
        let told_from = last_call::begins_at(state, event).minus(TOLD_AHEAD);
        let waits = event.stage() <= Stage::Preparing && !event.is_drill() && event.treatment.is_some();
        waits && event.slots_since.is_none() && event.is_scheduled() && now >= told_from
    };
    let warning = |event: &Event| {
        let out: Vec<String> = last_call::overdraft(state, event).iter().map(ToString::to_string).collect();
        let text = format!(
            "at {} Azure starts the event of {} although {} is out of service: from {} on the event's hooks move \
             service away, and allclear does not approve the event before enough members are in service",
            rfc3339(event.notice_ends()),
            named(event, " and "),
            out.join(" and "),
            rfc3339(last_call::begins_at(state, event)),
        );
        let since = rfc3339(last_call::begins_at(state, event).minus(TOLD_AHEAD));
        (!out.is_empty()).then(|| shown::Warning { since, text, event: event.announcement.id.to_string() })
    };
    state.open_events().filter(is_near).filter_map(warning)
}

/// The failed restore of the member and the remedy; `None` when the last restore did not fail.
pub fn restore_failed(state: &State, member: &Member) -> Option<String> {
    let failing = state.failing_return(member)?;
    let slot = state.slots.get(member)?;
    let why = failing.outcome.reason().unwrap_or_else(|| failing.outcome.as_str());
    let is_blocked = matches!(failing.outcome, Outcome::Blocked(_));
    let how = if is_blocked { "has been blocked" } else { "has failed" };
    let times = if failing.times == 1 { "once".into() } else { format!("{} times", failing.times) };
    let serves =
        if state.role(member) == Role::Primary { " By its last report, the member is the primary." } else { "" };
    let others = slot.group.as_ref().map_or_else(String::new, |group| {
        format!(
            "{serves} Until the member is back, the member counts as out of service in {group}, and other members of the \
                 group wait."
        )
    });
    Some(format!(
        "{member} is not back after event {}: its {} hook {how} {times} since {}: {why}. allclear retries the \
         hook at least once a minute.{others} Repair the cause; if the member already serves, run `allclear workload \
         restored {} --reason TEXT`",
        slot.by,
        state.hook_label(member, failing.hook),
        rfc3339(failing.since),
        member.path(),
    ))
}

/// Warnings of events whose notice had ended before the first sight, by whichever clock.
pub fn implausible_notices(state: &State) -> impl Iterator<Item = shown::Warning> {
    state.open_events().filter_map(|event| {
        let not_before = ignored_notice_end(state, event)?;
        let text = format!(
            "event {} was first seen at {}, and its notice had ended at {}: allclear ignores this end of the notice. \
             Compare the cluster's time with Azure's time",
            event.announcement.id,
            rfc3339(event.first_seen()),
            rfc3339(not_before),
        );
        Some(shown::Warning { since: rfc3339(event.first_seen()), text, event: event.announcement.id.to_string() })
    })
}

/// The end of the notice in the current documents, where allclear ignores this end.
pub(super) fn ignored_notice_end(state: &State, event: &Event) -> Option<Timestamp> {
    implausible_notice_end(&state.shown(&event.announcement.id)?, event.first_seen())
}

/// The warning while the cluster does not know the time.
pub(super) fn time_in_doubt(differences: &ClockSkew) -> Option<shown::Warning> {
    let text = "nothing confirms the cluster's time: the clocks of the replicas differ and no metadata endpoint tells the \
                time, or the clock of an earlier leader was ahead. The ends of notices count as unknown, and allclear \
                counts the usual notice of each event type instead. Compare each VM's clock with a time server \
                (`chronyc tracking`), and correct the wrong clock";
    Some(shown::Warning { since: rfc3339(differences.in_doubt_since()?), text: text.into(), event: String::new() })
}

/// The warning while this replica has no time from the cluster: its time goes on from the last entry before its start.
/// `behind` is by how much the wall clock is ahead.
pub(super) fn time_from_before_the_start(since: Timestamp, behind: Duration) -> shown::Warning {
    let text = format!(
        "since its start this replica has no time from the cluster, so its times count from its last entry: by the clock \
         of this VM they are {} s behind, and less time is left than this replica says. The times are right again with a \
         quorum",
        behind.as_secs()
    );
    shown::Warning { since: rfc3339(since), text, event: String::new() }
}

/// The end of a sentence about an event, in a replica with this warning.
pub(super) fn times_are_behind(behind: Duration) -> String {
    format!(
        "; by the clock of this VM the times told here are {} s behind: if it is right, less time is left",
        behind.as_secs()
    )
}

/// The event's VMs, as many as fit a log line.
fn named(event: &Event, between: &str) -> String {
    let vms = &event.announcement.resources;
    let mut named: Vec<String> = vms.iter().take(MOST).map(ToString::to_string).collect();
    if vms.len() > MOST {
        named.push(format!("{} more", vms.len() - MOST));
    }
    named.join(between)
}

/// The known facts of a second approval, and the remedy.
fn second_approver(event: &Event, started: Timestamp) -> String {
    let announced = &event.announcement;
    format!(
        "{SECOND_APPROVER} {} ({} of {}): the event was first seen as started at {}, {}, and no replica \
         of this cluster approved the event; find the other agent that polls Scheduled Events on a VM of the same \
         availability set, scale set or cloud service, or the automation that approves events, and keep only one \
         approver",
        announced.id,
        announced.kind,
        named(event, ", "),
        rfc3339(started),
        before_notice_ended(event)
    )
}

pub(super) fn before_notice_ended(event: &Event) -> String {
    format!("before the end of its notice at {}", rfc3339(event.notice_ends()))
}

#[cfg(test)]
mod tests;
