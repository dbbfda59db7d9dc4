//! The hooks of an affected workload that an event does not need, and the reasons.

use crate::model::attempt::Attempt;
use crate::model::document::EventType;
use crate::model::event::Event;
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::treatment::Treatment;
use crate::model::workload::{Hook, Intent, Phase, Role, RunsOn};
use crate::schedule::step::Step;
use core::time::Duration;

/// A freeze of at least this duration, or of unknown duration, runs every hook.
pub(crate) const LONG_FREEZE: Duration = Duration::from_secs(10);

/// The reason for which a hook is not run for an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SkipReason {
    /// Policy selects other phases.
    Phase,
    /// The impact had begun at first sight, and has already affected the VM.
    ImpactBegun,
    /// The hook is for other types of events.
    EventType,
    /// The freeze is brief, and the hook names no `min_freeze`.
    BriefFreeze,
    /// The freeze is shorter than this `min_freeze`.
    MinFreeze(Duration),
    /// The hook is optional in a short notice, and the notice is shorter than the hook's worst duration.
    ShortNotice { notice: Duration, worst: Duration },
    /// The workload is known not to be the primary of its group, or another member is known to be.
    NotPrimary,
    /// The hook would run, but has no way to run without changes.
    DryRun,
}

/// `None`: the event needs the hook. `is_led`: an affected member of the group is known to be the primary.
pub(crate) fn skip_reason(
    state: &State,
    event: &Event,
    treatment: &Treatment,
    step: &Step<'_>,
    is_led: impl Fn() -> bool,
) -> Option<SkipReason> {
    let Step { member, id, hook, .. } = step;
    // Check hooks run for every type of event.
    if id.phase == Phase::Check {
        return (!allowed_in_dry_run(event, hook)).then_some(SkipReason::DryRun);
    }
    if id.phase < Phase::Restore && !treatment.phases.contains(&id.phase) {
        return Some(SkipReason::Phase);
    }
    if event.entered_at(Stage::Started) == Some(event.first_seen()) && hook.runs_on == RunsOn::Affected {
        return Some(SkipReason::ImpactBegun);
    }
    if !is_for_event_type(event, hook) {
        return Some(SkipReason::EventType);
    }
    let is_tried = || event.attempts_of(member, *id).next().is_some();
    let is_elsewhere = || id.phase == Phase::Failover && !may_be_primary(state, event, step, is_led);
    freeze_too_short(event, treatment, hook)
        .or_else(|| notice_too_short(event, treatment, hook).filter(|_| !is_tried()))
        .or_else(|| is_elsewhere().then_some(SkipReason::NotPrimary))
        .or_else(|| (!allowed_in_dry_run(event, hook)).then_some(SkipReason::DryRun))
}

/// Whether the hook may run: in a dry run, only a hook that changes nothing there.
pub(crate) fn allowed_in_dry_run(event: &Event, hook: &Hook) -> bool {
    !event.is_dry_run() || hook.can_dry_run
}

pub(crate) fn is_for_event_type(event: &Event, hook: &Hook) -> bool {
    hook.event_types.is_empty() || hook.event_types.contains(&event.announcement.kind)
}

fn freeze_too_short(event: &Event, treatment: &Treatment, hook: &Hook) -> Option<SkipReason> {
    if event.announcement.kind != EventType::Freeze {
        return None;
    }
    let known_short = event.announcement.duration.filter(|duration| *duration < LONG_FREEZE);
    match (hook.min_freeze, known_short) {
        (Some(least), Some(duration)) => (least > duration).then_some(SkipReason::MinFreeze(least)),
        (None, _) => treatment.only_named_freezes.then_some(SkipReason::BriefFreeze),
        (Some(_), None) => None,
    }
}

fn notice_too_short(event: &Event, treatment: &Treatment, hook: &Hook) -> Option<SkipReason> {
    let notice = event.notice_ends().minus(treatment.margin).since(event.preparation_starts());
    let worst = hook.worst.unwrap_or(hook.timeout);
    (hook.optional_if_short && notice < worst).then_some(SkipReason::ShortNotice { notice, worst })
}

/// Whether the member may be the primary of its group, as far as is known. A failover that was begun stays with this
/// member, whatever role the member has now. A member that its own hooks have stopped, without a failover, was no primary:
/// its role is unknown because it has stopped.
fn may_be_primary(state: &State, event: &Event, step: &Step<'_>, is_led: impl Fn() -> bool) -> bool {
    let of_member = || event.attempts.iter().filter(|each| each.member == step.member);
    let is_begun = || of_member().any(|each| each.hook.phase == Phase::Failover);
    let has_left = || of_member().any(|each| each.stint == step.stint && has_taken_away(each));
    match state.role(&step.member) {
        Role::Primary => true,
        Role::Unknown => is_begun() || !(is_led() || has_left()),
        Role::Replica => is_begun(),
    }
}

/// Whether the attempt may have taken its member out of service.
fn has_taken_away(attempt: &Attempt) -> bool {
    let is_later = matches!(attempt.hook.phase, Phase::Drain | Phase::Shutdown);
    is_later && attempt.intent == Intent::Run && !attempt.is_blocked()
}
