//! The history of an event: stages, sightings, policy, hooks, waivers, posts, causes, impacts and operators' requests.

use super::post_detail::{claim_detail, detail};
use super::{operator_record, warning};
use crate::clock::rfc3339;
use allclear_core::model::attempt::{Outcome, WaiverReason};
use allclear_core::model::event::{Ending, Event};
use allclear_core::model::isolated_approval::RequestedBy;
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::operator::OperatorRecord;
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::Intent;
use allclear_core::planning_input::PlanningInput;
use allclear_core::start_cause::{StartCause, former_id, is_surely_approved_elsewhere};
use allclear_wire::pb::allclear::operator::v1 as shown;

type Steps = Vec<(Timestamp, TimelineRank, shown::Step)>;

/// The order of steps of the same millisecond: decisions of the leader enter the log together with the reports to the
/// leader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TimelineRank {
    Told,
    Chosen,
    Decided,
    Closed,
}

/// The steps of the event's history, in order of time.
pub(super) fn of(state: &State, event: &Event, input: &PlanningInput) -> Vec<shown::Step> {
    let mut steps: Steps = Vec::new();
    stages(event, &mut steps);
    beginning(event, &mut steps);
    hooks(state, event, &mut steps);
    budget(event, input.now, &mut steps);
    approvals(event, &mut steps);
    if let (Some(at), Some(cause)) = (event.entered_at(Stage::Started), event.start_cause()) {
        let step = start(state, event, (cause, input.quorum && is_surely_approved_elsewhere(state, event)));
        steps.push((at, TimelineRank::Told, step));
    }
    ending(event, &mut steps);
    steps.extend(operator_requests(state, event, input.now));
    steps.sort_by_key(|(at, place, _)| (*at, *place));
    steps.into_iter().map(|(at, _, step)| shown::Step { at: rfc3339(at), ..step }).collect()
}

/// Adds the event's stages, each behind the previous stage.
fn stages(event: &Event, steps: &mut Steps) {
    let mut before = None;
    for (stage, at) in &event.entered {
        let own = match stage {
            Stage::Preparing | Stage::Claimed => TimelineRank::Decided,
            Stage::Closed => TimelineRank::Closed,
            _ => TimelineRank::Told,
        };
        let place = before.filter(|(then, _)| then == at).map_or(own, |(_, place)| own.max(place));
        before = Some((*at, place));
        steps.push((*at, place, step_of(stage.to_string())));
    }
}

fn step_of(what: String) -> shown::Step {
    shown::Step { what, ..shown::Step::default() }
}

fn told_of(what: String, who: String, why: Option<String>) -> shown::Step {
    shown::Step { what, who: Some(who), why, ..shown::Step::default() }
}

/// The replicas that saw the event, or the maker of the drill, and the treatment chosen by policy.
fn beginning(event: &Event, steps: &mut Steps) {
    if let Some(drill) = &event.drill {
        let what = format!("{} of {}", drill.mode, drill.who);
        steps.push((event.first_seen(), TimelineRank::Told, told_of(what, drill.who.clone(), None)));
    } else {
        let seen: Vec<_> = event.seen_by.iter().map(ToString::to_string).collect();
        let (seen, announced) = (seen.join(", "), &event.announcement);
        let what = format!("{} by {} was first seen", announced.kind, announced.source);
        steps.push((event.first_seen(), TimelineRank::Told, told_of(what, seen, None)));
    }
    if let (Some(treatment), Some(at)) = (&event.treatment, event.treated) {
        let what = format!("policy chose the treatment {}, by the rule \"{}\"", treatment.action, treatment.rule);
        steps.push((at, TimelineRank::Chosen, told_of(what, "policy".into(), Some(treatment.rule.clone()))));
    }
}

fn hooks(state: &State, event: &Event, steps: &mut Steps) {
    for attempt in &event.attempts {
        let hook = state.hook_label(&attempt.member, attempt.hook);
        let what = format!("{hook} of {} on {}", attempt.member.workload, attempt.on);
        let mut push = |at, how: String, why: Option<&str>| {
            let place = outcome_place(at, attempt.begun_at);
            steps.push((at, place, told_of(format!("{what}: {how}"), attempt.on.to_string(), why.map(Into::into))));
        };
        let again = attempt.blocked.filter(|blocked| attempt.begun_at > blocked.since).map(|blocked| {
            format!(" again, after {} blocked attempts since {}", blocked.times, rfc3339(blocked.since))
        });
        push(attempt.begun_at, format!("{} begins{}", attempt.intent, again.unwrap_or_default()), None);
        if let Some((outcome, at)) = &attempt.outcome {
            let word = match attempt.intent {
                Intent::Run => outcome.as_str().to_owned(),
                Intent::Confirm | Intent::Undo => format!("{}: {}", attempt.intent, outcome.as_str()),
            };
            push(*at, said(&word, outcome.reason()), outcome.reason());
        }
        if let Some((outcome, at)) = &attempt.late {
            let why = match attempt.outcome.as_ref().map(|(settled, _)| settled) {
                None | Some(Outcome::Unknown(_) | Outcome::TimedOut(_)) => "the outcome came too late".into(),
                Some(settled) => format!("the hook had ended as {}", settled.as_str()),
            };
            push(*at, format!("{}, ignored because {why}", outcome.as_str()), outcome.reason());
        }
    }
    for waiver in &event.waivers {
        let member = &waiver.member;
        let hook = state.hook_label(member, waiver.hook);
        let what = format!("{hook} of {} on {}: waived", member.workload, member.vm);
        let (place, step) = match &waiver.why {
            WaiverReason::Unreachable => {
                let why = waiver.why.as_str();
                (TimelineRank::Decided, shown::Step { why: Some(why.into()), ..step_of(format!("{what}, {why}")) })
            }
            WaiverReason::Skipped { who, reason } => {
                let what = format!("{what}, skipped by {who}: {reason}");
                (TimelineRank::Told, told_of(what, who.clone(), Some(reason.clone())))
            }
        };
        steps.push((waiver.at, place, step));
    }
}

/// The time from which the budget counts, if this is later than the slots of the event.
fn budget(event: &Event, now: Timestamp, steps: &mut Steps) {
    let Some(budget) = event.treatment.as_ref().and_then(|treatment| treatment.budget) else { return };
    let counts_from = event.budget_ends().map(|ends| ends.minus(budget));
    let is_later = |from: &Timestamp| *from <= now && event.slots_since.is_some_and(|since| *from > since);
    if let Some(from) = event.halted_until.filter(|from| counts_from == Some(*from) && is_later(from)) {
        let seconds = budget.as_secs();
        let why = "because the event could not go on before, or has changed";
        let what = format!("the budget of {seconds} s counts from now on, {why}");
        steps.push((from, TimelineRank::Decided, step_of(what)));
    }
}

fn approvals(event: &Event, steps: &mut Steps) {
    for claim in &event.claims {
        let (by, reason) = (claim.approver.to_string(), claim.reason.as_str());
        let what = format!("approval assigned to {by} ({reason})");
        steps.push((claim.at, TimelineRank::Decided, told_of(what, by.clone(), Some(reason.into()))));
        if let Some((outcome, at)) = &claim.outcome {
            let told = claim_detail(claim);
            let how = said(outcome.as_str(), told.as_deref());
            let place = outcome_place(*at, claim.at);
            steps.push((*at, place, told_of(format!("approval by {by}: {how}"), by, told)));
        }
    }
    for takeover in &event.isolated_approvals {
        let lost: Vec<_> = takeover.out_of_reach.iter().map(ToString::to_string).collect();
        let (by, since, lost) = (takeover.approver.to_string(), rfc3339(takeover.alone_since), lost.join(", "));
        let isolation = format!("no leader since {since}, unreachable: {lost}");
        let step = match &takeover.requested_by {
            None => told_of(format!("{by} decides alone: {isolation}"), by.clone(), Some(isolation)),
            Some(RequestedBy { who, reason }) => {
                let what = format!("approved on {by} alone by {who}: {reason} ({isolation})");
                told_of(what, who.clone(), Some(reason.clone()))
            }
        };
        steps.push((takeover.at, TimelineRank::Told, step));
        if let Some((outcome, at)) = &takeover.outcome {
            let how = said(outcome.as_str(), detail(outcome).as_deref());
            steps.push((
                *at,
                TimelineRank::Told,
                told_of(format!("approval by {by} alone: {how}"), by.clone(), detail(outcome)),
            ));
        }
        let gives =
            |at| (at, TimelineRank::Told, told_of(format!("{by} reported its isolated approval"), by.clone(), None));
        steps.extend(takeover.recorded.map(gives));
    }
}

/// The rank of an outcome: an outcome in the millisecond of the decision still follows the decision.
fn outcome_place(at: Timestamp, decided: Timestamp) -> TimelineRank {
    if at == decided { TimelineRank::Decided } else { TimelineRank::Told }
}

/// Why the event started, as far as known.
fn start(state: &State, event: &Event, (cause, is_theirs): (StartCause, bool)) -> shown::Step {
    let early = warning::before_notice_ended(event);
    let (what, who) = match cause {
        StartCause::Approved => ("the event started because allclear approved the event".into(), "this cluster"),
        StartCause::NoticeExpired => ("the event started because the notice ended".into(), "Azure"),
        StartCause::Platform => match former_id(state, event) {
            Some(former) => (
                format!(
                    "the event had started when it was first seen, and event {former} was gone: the metadata service \
                     gave the same event a new id, as the vendor's mock server does, and Azure never does"
                ),
                "the metadata service",
            ),
            None => (
                "the event had started when it was first seen: the notice was over, or another replica that this one \
                 could not reach, another program or Azure (scheduledEventsPolicy) approved the event"
                    .into(),
                "Azure",
            ),
        },
        StartCause::ApprovedElsewhere if is_theirs => (
            format!(
                "another approver approved the event: the event started {early}, and no replica of this cluster \
                 approved the event"
            ),
            "another approver",
        ),
        StartCause::ApprovedElsewhere => {
            (format!("the event started {early}, and no approval by a replica of this cluster is known"), "unknown")
        }
    };
    told_of(what, who.into(), Some(cause.as_str().into()))
}

/// The last calls, the returns of slots and the end of the event, and the impacts observed by the replicas of the event's VMs.
fn ending(event: &Event, steps: &mut Steps) {
    for at in event.former_calls.iter().copied().chain(event.last_call_since) {
        let what = "last call: the hooks move service away even over budget, because Azure is about to start the event";
        steps.push((at, TimelineRank::Decided, step_of(what.into())));
    }
    for at in &event.gave_back {
        let what = "the members of the event return to service, because the event does not go on";
        steps.push((*at, TimelineRank::Decided, step_of(what.into())));
    }
    let Some((over, ending)) = event.over_at().zip(event.ending) else { return };
    let unseen = unseen_start(event, over, ending);
    steps.push((over, TimelineRank::Told, step_of(format!("the event is over: {}{unseen}", ending.as_str()))));
    for (vm, lasted) in &event.impacts {
        let what = if lasted.is_zero() {
            format!("{vm} measured no pause of its own")
        } else {
            format!("{vm} did not run for {} ms, by its own measurement", lasted.as_millis())
        };
        steps.push((over, TimelineRank::Told, told_of(what, vm.to_string(), None)));
    }
}

/// What is not known about an event that no replica saw as Started.
fn unseen_start(event: &Event, over: Timestamp, ending: Ending) -> &'static str {
    if event.entered_at(Stage::Started).is_some() {
        return "";
    }
    match ending {
        Ending::Completed => "; no replica saw the start, and an approval of this cluster may have reached Azure",
        Ending::Cancelled if over >= event.notice_ends() => {
            "; no replica saw the start, and the notice had ended: Azure may have started the event unseen"
        }
        Ending::Cancelled | Ending::Forgotten | Ending::Drilled | Ending::Interrupted => "",
    }
}

fn operator_requests<'a>(
    state: &'a State,
    event: &'a Event,
    now: Timestamp,
) -> impl Iterator<Item = (Timestamp, TimelineRank, shown::Step)> {
    let why = |wish: &OperatorRecord| Some(wish.reason.clone()).filter(|reason| !reason.is_empty());
    let step = move |wish: &OperatorRecord| {
        (wish.at, TimelineRank::Told, told_of(operator_record::told(state, wish), wish.who.clone(), why(wish)))
    };
    state.records_about(event, now).map(step)
}

fn said(word: &str, reason: Option<&str>) -> String {
    reason.map_or_else(|| word.into(), |reason| format!("{word}: {reason}"))
}

#[cfg(test)]
mod tests;
