//! The reason why an event has not started, for people (`SPEC.md` 12): from the event's clearance, and from facts
//! outside the log.

use crate::isolation::approval;
use crate::model::blocker::{Blocker, Clearance};
use crate::model::claim::Claim;
use crate::model::event::Event;
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::to_the_second;
use crate::model::workload::Intent;
use crate::plan::placement;
use crate::plan::registration::unregistered_blocker;
use crate::planning_input::PlanningInput;
use crate::schedule::clearance::{clearance, clearance_of_preparation};
use crate::schedule::required;
use crate::schedule::slots;

/// Why the event has not started, for people; `None` without a reason to wait.
pub fn explain(state: &State, event: &Event, input: &PlanningInput) -> Option<Blocker> {
    let found = waits_for(state, event, input)?;
    Some(replica_away(state, event, input, &found).unwrap_or(found))
}

fn waits_for(state: &State, event: &Event, input: &PlanningInput) -> Option<Blocker> {
    if let Some(since) = event.entered_at(Stage::Approved).filter(|_| event.stage() == Stage::Approved) {
        return Some(Blocker::WaitingForPlatform { since });
    }
    if event.stage() >= Stage::Started {
        return None;
    }
    if !input.quorum {
        let takeover = if event.is_drill() { None } else { approval::forecast(state, input, &event.announcement.id) };
        return Some(Blocker::NoQuorum { forecast: takeover });
    }
    if event.is_drill() {
        let prepared = event.treatment.as_ref().map(|_| clearance_of_preparation(state, event, input.now));
        return Some(match prepared {
            Some(Clearance::Blocked(blocker)) => blocker,
            Some(Clearance::Clear(_) | Clearance::NothingToApprove) | None => Blocker::Deciding,
        });
    }
    if let Some(claim) = event.open_claim() {
        return Some(Blocker::Posting { approver: claim.approver.clone(), since: claim.at, until: claim.until });
    }
    match clearance(state, event, input.now) {
        Clearance::NothingToApprove if state.is_listed(&event.announcement.id) => Some(Blocker::Observing),
        // No document counts, so the status of the event is unknown.
        Clearance::NothingToApprove => Some(Blocker::NoHealthyChannel),
        Clearance::Blocked(blocker) => Some(blocker),
        Clearance::Clear(_) if input.approver(state, &event.announcement.id).is_none() => {
            Some(Blocker::NoHealthyChannel)
        }
        Clearance::Clear(reason) => {
            let failed = || event.claims.last().and_then(|last| post_failed(event, last));
            unregistered_blocker(state, event, reason, input).or_else(failed).or(Some(Blocker::Deciding))
        }
    }
}

fn post_failed(event: &Event, last: &Claim) -> Option<Blocker> {
    let (outcome, at) = last.outcome.clone()?;
    let again_at = event.next_claim_from()?;
    Some(Blocker::PostFailed { approver: last.approver.clone(), outcome, at, again_at })
}

/// Reachability is not in the log.
fn replica_away(state: &State, event: &Event, input: &PlanningInput, found: &Blocker) -> Option<Blocker> {
    let Blocker::HookWaiting { member, hook, .. } = found else { return None };
    if slots::waits_for_last_call(event) {
        return None;
    }
    let steps = required::required_steps(state, event);
    let step = steps.iter().find(|step| step.member == *member && step.id == *hook)?;
    if placement::replica_for_step(state, event, step, Intent::Run, input).is_some() {
        return None;
    }
    let silent = input.peers.get(&member.vm).filter(|contact| !contact.reachable);
    let since = silent.map(|contact| to_the_second(contact.since));
    let passed_over_at =
        placement::unreachable_replica_given_up_at(&member.vm, input).filter(|_| event.is_user_initiated());
    let passed_over_at = passed_over_at.map(to_the_second);
    Some(Blocker::ReplicaAway { member: member.clone(), hook: *hook, since, passed_over_at })
}
