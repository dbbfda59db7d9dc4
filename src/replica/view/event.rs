//! An event as operators see it.

use super::{blocker, drill};
use crate::machine::attempt::Attempt;
use crate::machine::blocker::explain;
use crate::machine::claim::{Claim, PostOutcome, Reason};
use crate::machine::document::NotBefore;
use crate::machine::event::{Ending, Event, StartCause};
use crate::machine::lifecycle::Stage;
use crate::machine::situation::Situation;
use crate::machine::state::State;
use crate::replica::clock::rfc3339;
use crate::replica::hooks::key;
use crate::wire::pb::allclear::operator::v1 as shown;

pub(super) fn shown(state: &State, event: &Event, situation: &Situation) -> shown::Event {
    let announcement = &event.announcement;
    let is_open = event.ending.is_none();
    shown::Event {
        id: announcement.id.to_string(),
        r#type: announcement.kind.to_string(),
        source: announcement.source.to_string(),
        resources: announcement.resources.iter().map(ToString::to_string).collect(),
        status: state.observed_status(&announcement.id).filter(|_| is_open).map(ToString::to_string),
        not_before: match announcement.not_before {
            NotBefore::At(at) => Some(rfc3339(at)),
            NotBefore::Unknown => None,
        },
        description: announcement.description.clone(),
        duration_s: announcement.duration.map_or(-1, |duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)),
        stage: event.stage().to_string(),
        treatment: event.treatment.as_ref().map(|treatment| treatment.action.to_string()),
        rule: event.treatment.as_ref().map(|treatment| treatment.rule.clone()),
        revision: event.revision,
        blocker: explain(state, event, situation).map(|found| blocker::shown(&found, event)),
        hooks: event.attempts.iter().map(|attempt| hook(event, attempt)).collect(),
        approvals: event.claims.iter().map(|claim| approval(event, claim)).chain(takeovers(event)).collect(),
        outcome: event.ending.map(Ending::as_word).map(Into::into),
        start_cause: event.start_cause().map(StartCause::as_word).map(Into::into),
        timeline: timeline(event),
        drill: event.drill.as_ref().map(|found| drill::shown(state, event, found)),
        seen_by: event.seen_by.iter().map(ToString::to_string).collect(),
    }
}

fn hook(event: &Event, attempt: &Attempt) -> shown::Hook {
    let outcome = attempt.outcome.as_ref();
    let progress = attempt.progress.as_ref();
    shown::Hook {
        workload: attempt.member.workload.to_string(),
        vm: attempt.member.vm.to_string(),
        phase: attempt.hook.phase.to_string(),
        attempt: key(&event.announcement.id, attempt.id),
        intent: attempt.intent.to_string(),
        on: attempt.on.to_string(),
        outcome: outcome.map(|(outcome, _)| outcome.as_word().into()),
        reason: outcome.and_then(|(outcome, _)| outcome.reason()).map(Into::into),
        started_at: rfc3339(attempt.begun_at),
        ended_at: outcome.map(|(_, at)| rfc3339(*at)),
        deadline: rfc3339(attempt.deadline),
        progress: progress.map(|progress| progress.text.clone()),
        expected_end: progress.and_then(|progress| progress.expected_end).map(rfc3339),
    }
}

fn approval(event: &Event, claim: &Claim) -> shown::Approval {
    shown::Approval {
        attempt: key(&event.announcement.id, claim.attempt),
        approver: claim.approver.to_string(),
        reason: claim.reason.as_word().into(),
        outcome: claim.outcome.as_ref().map(|(outcome, _)| outcome.as_word().into()),
        detail: claim.outcome.as_ref().and_then(|(outcome, _)| detail(outcome)),
        claimed_at: rfc3339(claim.at),
        at: rfc3339(claim.outcome.as_ref().map_or(claim.at, |(_, at)| *at)),
    }
}

/// Approvals without a quorum, told apart by who gave them and when.
fn takeovers(event: &Event) -> impl Iterator<Item = shown::Approval> {
    event.takeovers.iter().map(|takeover| shown::Approval {
        attempt: format!("{}/alone-{}-{}", event.announcement.id, takeover.approver, takeover.at.0),
        approver: takeover.approver.to_string(),
        reason: Reason::Takeover.as_word().into(),
        outcome: takeover.outcome.as_ref().map(|(outcome, _)| outcome.as_word().into()),
        detail: takeover.outcome.as_ref().and_then(|(outcome, _)| detail(outcome)),
        claimed_at: rfc3339(takeover.at),
        at: rfc3339(takeover.outcome.as_ref().map_or(takeover.at, |(_, at)| *at)),
    })
}

fn detail(outcome: &PostOutcome) -> Option<String> {
    match outcome {
        PostOutcome::Refused(status) => Some(format!("HTTP status {status}")),
        PostOutcome::NotSent(why) | PostOutcome::Unknown(why) => Some(why.clone()),
        PostOutcome::Accepted | PostOutcome::Withdrawn => None,
    }
}

/// Stages, hooks, waivers and posts in the order in which they happened.
fn timeline(event: &Event) -> Vec<shown::Step> {
    let mut steps: Vec<_> = event.entered.iter().map(|(stage, at)| (*at, stage.to_string())).collect();
    let drill = event.drill.iter().map(|drill| (event.first_seen(), format!("{} of {}", drill.mode, drill.who)));
    steps.extend(drill);
    for attempt in &event.attempts {
        let what = format!("{} of {} on {}", attempt.hook.phase, attempt.member.workload, attempt.on);
        steps.push((attempt.begun_at, format!("{what}: {} begins", attempt.intent)));
        let ended = attempt.outcome.iter().map(|(outcome, at)| (*at, said(outcome.as_word(), outcome.reason())));
        let late = attempt.late.iter().map(|(outcome, at)| (*at, format!("{}, too late to count", outcome.as_word())));
        steps.extend(ended.chain(late).map(|(at, how)| (at, format!("{what}: {how}"))));
    }
    for waiver in &event.waivers {
        let member = &waiver.member;
        let what = format!("{} of {} on {}: not waited for", waiver.hook.phase, member.workload, member.vm);
        steps.push((waiver.at, format!("{what}, {}", waiver.why.as_word())));
    }
    for claim in &event.claims {
        steps.push((claim.at, format!("approval assigned to {} ({})", claim.approver, claim.reason.as_word())));
        if let Some((outcome, at)) = &claim.outcome {
            let how = said(outcome.as_word(), detail(outcome).as_deref());
            steps.push((*at, format!("approval by {}: {how}", claim.approver)));
        }
    }
    for takeover in &event.takeovers {
        let lost: Vec<_> = takeover.out_of_reach.iter().map(ToString::to_string).collect();
        let (by, since, lost) = (&takeover.approver, rfc3339(takeover.alone_since), lost.join(", "));
        let why = format!("{by} decides alone: no leader since {since}, out of reach: {lost}");
        steps.push((takeover.at, why));
        if let Some((outcome, at)) = &takeover.outcome {
            steps.push((
                *at,
                format!("approval by {by} alone: {}", said(outcome.as_word(), detail(outcome).as_deref())),
            ));
        }
        let told = takeover.recorded.map(|at| (at, format!("{by} gives account of its approval")));
        steps.extend(told);
    }
    // Of what happened in the same millisecond, being closed comes last.
    steps.sort_by_key(|(at, what)| (*at, what == Stage::Closed.as_word()));
    steps.into_iter().map(|(at, what)| shown::Step { at: rfc3339(at), what }).collect()
}

fn said(word: &str, reason: Option<&str>) -> String {
    reason.map_or_else(|| word.into(), |reason| format!("{word}: {reason}"))
}
