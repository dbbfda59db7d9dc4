//! An event as shown to operators.

use std::collections::BTreeMap;
use std::time::Duration;

use super::post_detail::{claim_detail, detail};
use super::primary::{primaries, unmoved_primaries};
use super::workload::last_role;
use super::{advice, blocker, drill, operator_record, timeline, warning};
use crate::clock::rfc3339;
use allclear_core::explain::{explain, hooks_run_again};
use allclear_core::known_roles::{TakenDown, taken_down};
use allclear_core::model::attempt::{Attempt, Waiver, WaiverReason};
use allclear_core::model::claim::Claim;
use allclear_core::model::document::{NotBefore, Status};
use allclear_core::model::event::{Ending, Event};
use allclear_core::model::hook_id::HookId;
use allclear_core::model::id::VmName;
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::slot::{Slot, SlotState};
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::Member;
use allclear_core::planning_input::PlanningInput;
use allclear_core::schedule::missing::{hooks_due_again, hooks_to_come, missing_hooks};
use allclear_core::schedule::restore;
use allclear_core::start_cause::StartCause;
use allclear_wire::pb::allclear::operator::v1 as shown;

pub(super) fn shown(state: &State, event: &Event, input: &PlanningInput, doctor: &str) -> shown::Event {
    let announcement = &event.announcement;
    let blockers = explain(state, event, input);
    let mut blockers = blockers.iter().map(|found| blocker::shown(found, event, state, input));
    let mut told = shown::Event {
        id: announcement.id.to_string(),
        r#type: announcement.kind.to_string(),
        source: announcement.source.to_string(),
        resources: announcement.resources.iter().map(ToString::to_string).collect(),
        status: status(state, event).map(ToString::to_string),
        not_before: match announcement.not_before {
            NotBefore::At(at) => Some(rfc3339(at)),
            NotBefore::Unknown => None,
        },
        ignored_not_before: warning::ignored_notice_end(state, event).map(rfc3339),
        description: announcement.description.clone(),
        duration_s: announcement.duration.map_or(-1, |duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)),
        stage: event.stage().to_string(),
        treatment: event.treatment.as_ref().map(|treatment| treatment.action.to_string()),
        rule: event.treatment.as_ref().map(|treatment| treatment.rule.clone()),
        revision: event.revision,
        blocker: blockers.next(),
        other_blockers: blockers.collect(),
        takes_down: if event.stage() < Stage::Restoring {
            taken_down(state, event, input).iter().map(down).collect()
        } else {
            Vec::new()
        },
        hooks: hooks(state, event),
        approvals: event.claims.iter().map(|claim| approval(event, claim)).chain(takeovers(event)).collect(),
        outcome: event.ending.map(Ending::as_str).map(Into::into),
        start_cause: event.start_cause().map(StartCause::as_str).map(Into::into),
        start_seen: event.entered_at(Stage::Started).is_some(),
        timeline: timeline::of(state, event, input),
        drill: event.drill.as_ref().map(|found| drill::shown(state, event, found)),
        seen_by: event.seen_by.iter().map(ToString::to_string).collect(),
        hold: event.hold(input.now).map(|hold| operator_record::shown(&hold, Some(event), state, input)),
        measures: Some(measures(event)),
        approved_by_operator: event.is_approved_by_operator(),
        missing_hooks: missing_hooks(state, event).iter().map(|hook| named(state, hook)).collect(),
        skipped_hooks: skipped_hooks(state, event),
        hooks_to_come: hooks_to_come(state, event).iter().map(|hook| named(state, hook)).collect(),
        advice: Vec::new(),
        primaries: Vec::new(),
    };
    told.primaries = primaries(&told);
    let facts = advice::Facts {
        lacks_quorum: !input.quorum,
        is_undecided: event.is_undecided(),
        hooks_run_again: hooks_run_again(state, event, input.now),
        retries: retries(state, event),
        away: away(state, event),
        unmoved_elsewhere: unmoved_elsewhere(state, &told, input),
        last_document: blocker::last_document_at(input),
    };
    told.advice = advice::of(&told, &facts, input.now, doctor);
    told
}

/// When the failed restore of each member of the event is tried again.
fn retries(state: &State, event: &Event) -> BTreeMap<String, Timestamp> {
    let members = state.slots.iter().filter(|(_, slot)| slot.by == event.announcement.id).map(|(member, _)| member);
    members.filter_map(|member| Some((member.path(), restore::retried_at(state, member)?))).collect()
}

/// Since when the workload of each member that waits for its restore is disconnected.
fn away(state: &State, event: &Event) -> BTreeMap<String, Timestamp> {
    let is_owed =
        |slot: &Slot| slot.by == event.announcement.id && slot.state == SlotState::Returning && slot.needs_restore;
    let owed = state.slots.iter().filter(|(member, slot)| is_owed(slot) && state.is_absent(member));
    owed.filter_map(|(member, _)| Some((member.path(), state.away_since(member)?))).collect()
}

/// The end of a pause lets every event go on, so the command names the primaries of the others.
fn unmoved_elsewhere(state: &State, told: &shown::Event, input: &PlanningInput) -> Vec<String> {
    if !advice::blockers(told).any(|blocker| blocker.code == "paused") {
        return Vec::new();
    }
    let others = state
        .open_events()
        .filter(|other| other.is_undecided() && !other.is_drill() && other.announcement.id.to_string() != told.id);
    let taken = others.map(|other| taken_down(state, other, input).iter().map(down).collect());
    taken.flat_map(|takes_down| unmoved_primaries(&shown::Event { takes_down, ..Default::default() })).collect()
}

fn named(state: &State, (member, hook): &(Member, HookId)) -> String {
    format!("{} of {} on {}", state.hook_label(member, *hook), member.workload, member.vm)
}

fn down(found: &TakenDown<'_>) -> shown::TakenDown {
    shown::TakenDown {
        workload: found.member.workload.to_string(),
        vm: found.member.vm.to_string(),
        group: found.group.map(ToString::to_string),
        role: found.role.role.as_str().into(),
        last_role: last_role(found.role),
        may_be_primary: found.may_be_primary,
        failover_left: found.failover_left,
    }
}

fn measures(event: &Event) -> shown::Measures {
    let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let impact = |(vm, lasted): (&VmName, &Duration)| shown::Impact { vm: vm.to_string(), observed_ms: ms(*lasted) };
    shown::Measures {
        notice_ms: event.announced_notice().map(ms),
        prepare_ms: event.time_to_prepare().map(ms),
        all_clear_ms: event.time_to_all_clear().map(ms),
        impact_observed_ms: event.impact().map(ms),
        impacts: event.impacts.iter().map(impact).collect(),
    }
}

/// The hook's name within the member, for texts that name the member elsewhere: `drain#2` of `db-0/postgres/drain#2`.
pub fn hook_label<'a>(hook: &'a str, phase: &'a str) -> &'a str {
    hook.rsplit_once('/').map_or(phase, |(_, label)| label)
}

/// The event's status in the documents, until the event is over.
pub fn status<'a>(state: &'a State, event: &Event) -> Option<&'a Status> {
    state.observed_status(&event.announcement.id).filter(|_| event.ending.is_none())
}

/// The attempts, the last of each hook with what follows it.
fn hooks(state: &State, event: &Event) -> Vec<shown::Hook> {
    let due_again = hooks_due_again(state, event);
    let afterwards = |attempt: &Attempt| {
        let (member, id) = (&attempt.member, attempt.hook);
        if event.forward_attempts_of(member, id).next_back() != Some(attempt) {
            return None;
        }
        let waiver = event.waivers.iter().find(|waiver| waiver.member == *member && waiver.hook == id);
        let is_due = || due_again.contains(&(member.clone(), id));
        waiver.map(waived).or_else(|| is_due().then(|| "to run again".into()))
    };
    let with_course =
        |attempt: &Attempt| shown::Hook { afterwards: afterwards(attempt), ..hook(state, event, attempt) };
    event.attempts.iter().map(with_course).collect()
}

/// The waived hooks without an attempt.
fn skipped_hooks(state: &State, event: &Event) -> Vec<String> {
    let has_begun = |waiver: &&Waiver| event.attempts_of(&waiver.member, waiver.hook).next().is_some();
    let skipped = event.waivers.iter().filter(|waiver| !has_begun(waiver));
    skipped.map(|it| format!("{}: {}", named(state, &(it.member.clone(), it.hook)), waived(it))).collect()
}

fn waived(waiver: &Waiver) -> String {
    match &waiver.why {
        WaiverReason::Unreachable => "skipped, because its replica is unreachable".into(),
        WaiverReason::Skipped { who, reason } => format!("skipped by {who}: {reason}"),
    }
}

fn hook(state: &State, event: &Event, attempt: &Attempt) -> shown::Hook {
    let outcome = attempt.outcome.as_ref();
    let progress = attempt.progress.as_ref();
    shown::Hook {
        workload: attempt.member.workload.to_string(),
        vm: attempt.member.vm.to_string(),
        phase: attempt.hook.phase.to_string(),
        attempt: event.announcement.id.key_of(attempt.id),
        intent: attempt.intent.to_string(),
        on: attempt.on.to_string(),
        outcome: outcome.map(|(outcome, _)| outcome.as_str().into()),
        reason: outcome.and_then(|(outcome, _)| outcome.reason()).map(Into::into),
        started_at: rfc3339(attempt.begun_at),
        ended_at: outcome.map(|(_, at)| rfc3339(*at)),
        deadline: rfc3339(event.deadline_of(attempt)),
        progress: progress.map(|progress| progress.text.clone()),
        expected_end: progress.and_then(|progress| progress.expected_end).map(rfc3339),
        name: state.hook(&attempt.member, attempt.hook).and_then(|hook| hook.name.clone()),
        blocked_times: attempt.blocked.map(|blocked| blocked.times),
        blocked_since: attempt.blocked.map(|blocked| rfc3339(blocked.since)),
        hook: state.hook_name(&attempt.member, attempt.hook),
        afterwards: None,
    }
}

fn approval(event: &Event, claim: &Claim) -> shown::Approval {
    shown::Approval {
        attempt: event.announcement.id.key_of(claim.attempt),
        approver: claim.approver.to_string(),
        reason: claim.reason.as_str().into(),
        outcome: claim.outcome.as_ref().map(|(outcome, _)| outcome.as_str().into()),
        detail: claim_detail(claim),
        claimed_at: rfc3339(claim.at),
        at: rfc3339(claim.outcome.as_ref().map_or(claim.at, |(_, at)| *at)),
    }
}

/// Approvals without a quorum, distinguished by approver and time.
fn takeovers(event: &Event) -> impl Iterator<Item = shown::Approval> {
    event.isolated_approvals.iter().map(|takeover| shown::Approval {
        attempt: format!("{}/alone-{}-{}", event.announcement.id, takeover.approver, takeover.at.0),
        approver: takeover.approver.to_string(),
        reason: takeover.reason().as_str().into(),
        outcome: takeover.outcome.as_ref().map(|(outcome, _)| outcome.as_str().into()),
        detail: takeover.outcome.as_ref().and_then(|(outcome, _)| detail(outcome)),
        claimed_at: rfc3339(takeover.at),
        at: rfc3339(takeover.outcome.as_ref().map_or(takeover.at, |(_, at)| *at)),
    })
}
