//! What happened to an event: its stages, hooks, waivers and posts, and what operators asked for.

use super::event::detail;
use super::wish;
use crate::machine::attempt::WaiverReason;
use crate::machine::event::Event;
use crate::machine::lifecycle::Stage;
use crate::machine::operator::{What, Wish};
use crate::machine::state::State;
use crate::machine::time::Timestamp;
use crate::replica::clock::rfc3339;
use crate::wire::pb::allclear::operator::v1 as shown;

type Steps = Vec<(Timestamp, String)>;

/// In the order in which it happened.
pub(super) fn of(state: &State, event: &Event, now: Timestamp) -> Vec<shown::Step> {
    let mut steps: Steps = event.entered.iter().map(|(stage, at)| (*at, stage.to_string())).collect();
    let drill = event.drill.iter().map(|drill| (event.first_seen(), format!("{} of {}", drill.mode, drill.who)));
    steps.extend(drill);
    hooks(event, &mut steps);
    approvals(event, &mut steps);
    steps.extend(wishes(state, event, now));
    // Of what happened in the same millisecond, being closed comes last.
    steps.sort_by_key(|(at, what)| (*at, what == Stage::Closed.as_word()));
    steps.into_iter().map(|(at, what)| shown::Step { at: rfc3339(at), what }).collect()
}

fn hooks(event: &Event, steps: &mut Steps) {
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
        let why = match &waiver.why {
            WaiverReason::Unreachable => waiver.why.as_word().into(),
            WaiverReason::Skipped { who, reason } => format!("skipped by {who}: {reason}"),
        };
        steps.push((waiver.at, format!("{what}, {why}")));
    }
}

fn approvals(event: &Event, steps: &mut Steps) {
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
}

/// What operators asked for about the event, and about all events while it was open.
fn wishes(state: &State, event: &Event, now: Timestamp) -> Steps {
    let closed = event.entered_at(Stage::Closed).unwrap_or(now);
    let ends = |wish: &Wish| match wish.what {
        What::Hold { until } | What::Pause { until } => until,
        What::Release | What::Approve { .. } | What::Resume | What::Other(_) => wish.at,
    };
    let is_of_its_time = |wish: &&Wish| wish.at <= closed && ends(wish) >= event.first_seen();
    let of_all = state.wishes.iter().filter(is_of_its_time);
    event.wishes.iter().chain(of_all).map(|wish| (wish.at, wish::told(wish))).collect()
}

fn said(word: &str, reason: Option<&str>) -> String {
    reason.map_or_else(|| word.into(), |reason| format!("{word}: {reason}"))
}
