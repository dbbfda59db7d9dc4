//! Why a rule matched or did not, and why a hook is not run, in words.

use serde::Serialize;

use allclear_core::model::document::Announcement;
use allclear_core::model::event::Event;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::RunsOn;
use allclear_core::policy::{Choice, Policy, PolicyCondition, PolicyInput, Range, notice};
use allclear_core::schedule::skip_reason::SkipReason;
use allclear_core::schedule::step::Step;

/// A rule before the rule that matched.
#[derive(Serialize)]
pub(super) struct PassedOver {
    pub(super) rule: String,
    /// The rule's first condition that does not hold.
    pub(super) because: String,
}

/// Every condition of the matching rule.
pub(super) fn matched(choice: &Choice<'_>, policy: &Policy, event: &Announcement, now: Timestamp) -> Vec<String> {
    let conditions = choice.case.conditions(policy);
    if conditions.is_empty() {
        return vec!["the rule matches every event".into()];
    }
    let told = conditions.iter().filter(|condition| **condition != PolicyCondition::Recommendation(false));
    told.map(|condition| said(condition, event, now, true)).collect()
}

pub(super) fn passed_over(choice: &Choice<'_>, event: &Announcement, now: Timestamp) -> Vec<PassedOver> {
    let told = |(case, unmet): &(PolicyInput<'_>, PolicyCondition<'_>)| PassedOver {
        rule: case.name().into(),
        because: said(unmet, event, now, false),
    };
    // Nearly every event is none, and needs no line about it.
    let is_told = |(case, _): &&(PolicyInput<'_>, _)| !matches!(case, PolicyInput::Recommendation);
    choice.passed_over.iter().filter(is_told).map(told).collect()
}

fn said(condition: &PolicyCondition<'_>, event: &Announcement, now: Timestamp, holds: bool) -> String {
    let is = if holds { "is" } else { "is not" };
    match condition {
        PolicyCondition::Started if holds => "Azure has started the event before the first poll".into(),
        PolicyCondition::Started => format!("the status is {}, not Started", event.status),
        PolicyCondition::Type(_) if holds => format!("the type is {}", event.kind),
        PolicyCondition::Type(kinds) => format!("the type is {}, not {}", event.kind, any_of(kinds)),
        PolicyCondition::Source(_) if holds => format!("the source is {}", event.source),
        PolicyCondition::Source(sources) => format!("the source is {}, not {}", event.source, any_of(sources)),
        PolicyCondition::Resources(vms) => {
            let verb = if holds { "the event names" } else { "the event does not name" };
            format!("{verb} {}", any_of(vms))
        }
        PolicyCondition::Duration(range) => ranged("duration", event.duration, *range, is),
        PolicyCondition::Notice(range) => ranged("notice", notice(event, now), *range, is),
        PolicyCondition::Recommendation(is) if holds == *is => format!("the type {} is a recommendation", event.kind),
        PolicyCondition::Recommendation(_) => format!("the type {} is no recommendation", event.kind),
        PolicyCondition::Foreign if holds => "the event names no member of this cluster".into(),
        PolicyCondition::Foreign => "the event names a member of this cluster".into(),
    }
}

fn any_of<T: ToString>(known: &[T]) -> String {
    known.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
}

fn ranged(what: &str, value: Option<core::time::Duration>, range: Range, is: &str) -> String {
    let bounds = [("at least", range.at_least), ("below", range.below)];
    let bounds = bounds.into_iter().filter_map(|(word, bound)| Some(format!("{word} {}", length(bound?))));
    let bounds = bounds.collect::<Vec<_>>().join(" and ");
    match value {
        Some(value) => format!("the {what} of {} {is} {bounds}", length(value)),
        None => format!("the {what} is unknown, which {is} {bounds}"),
    }
}

/// A duration as text, cut to milliseconds.
pub(super) fn length(span: core::time::Duration) -> String {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    humantime::format_duration(core::time::Duration::from_millis(millis)).to_string()
}

pub(super) fn left_out(why: SkipReason) -> String {
    match why {
        SkipReason::Phase => "the treatment does not include this phase".into(),
        SkipReason::ImpactBegun => "the impact has begun, and the hook runs on the affected VM".into(),
        SkipReason::BriefFreeze => "the freeze is brief, and the hook has no min_freeze".into(),
        SkipReason::EventType => "the hook is not for events of this type".into(),
        SkipReason::ShortNotice { notice, worst } => {
            format!("the notice of {} is shorter than the {} that the hook may take", length(notice), length(worst))
        }
        SkipReason::NotPrimary => "the workload is known not to be the primary".into(),
        SkipReason::DryRun => "the hook does not declare dry_run".into(),
        SkipReason::MinFreeze(least) => format!("the freeze is shorter than min_freeze of the hook, {}", length(least)),
    }
}

/// Why a hook does not start although every replica is healthy and every earlier hook is done.
pub(super) fn never_begun(event: &Event, step: &Step<'_>) -> String {
    if event.preparation_ends() <= event.preparation_starts() {
        "the notice leaves no time for the hook".into()
    } else if step.hook.runs_on == RunsOn::Affected {
        "an earlier hook never lets this hook start".into()
    } else {
        "no unaffected VM of the group can run the hook".into()
    }
}
