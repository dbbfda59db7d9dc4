//! Which hooks an event needs, in the order in which those of one workload run. Derived from what is registered, noted
//! of the workloads, chosen for the event and tried.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use super::document::Kind;
use super::event::Event;
use super::id::GroupName;
use super::lifecycle::Stage;
use super::policy::{Action, Treatment};
use super::state::State;
use super::workload::{Hook, HookId, Member, OnAbsent, Phase, Role, RunsOn, Workload};

/// A freeze from this long on, or of unknown length, is worth every hook.
const LONG_FREEZE: Duration = Duration::from_secs(10);

/// One hook of one affected workload.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    pub member: Member,
    pub id: HookId,
    pub hook: &'a Hook,
    /// The workload dials in and is away: what that means.
    pub away: Option<OnAbsent>,
}

/// The hooks that prepare the affected workloads; those of one workload stand in the order in which they run.
pub fn preparing<'a>(state: &'a State, event: &Event) -> Vec<Step<'a>> {
    let Some(treatment) = event.treatment.as_ref().filter(|treatment| treatment.action == Action::Prepare) else {
        return Vec::new();
    };
    let mut phases: Vec<Phase> = treatment.phases.iter().copied().filter(|phase| *phase < Phase::Restore).collect();
    phases.sort_unstable();
    phases.dedup();
    let affected: Vec<_> = state.workloads().filter(|(member, _)| event.affects(&member.vm)).collect();
    let is_primary = |(member, _): &&(Member, &Workload)| state.role(member) == Role::Primary;
    let led: BTreeSet<&GroupName> =
        affected.iter().filter(is_primary).filter_map(|(_, workload)| workload.group.as_ref()).collect();
    let mut steps = Vec::new();
    for (member, workload) in affected {
        let is_led = workload.group.as_ref().is_some_and(|group| led.contains(group));
        for phase in &phases {
            if *phase == Phase::Failover && !may_be_primary(state, event, &member, is_led) {
                continue;
            }
            let hooks = workload.hooks_of(*phase).filter(|(_, hook)| applies(event, treatment, hook));
            let hooks = hooks.filter(|(id, hook)| holds(event, treatment, hook) || is_tried(event, &member, *id));
            let away = away(state, &member, workload);
            steps.extend(hooks.map(|(id, hook)| Step { member: member.clone(), id, hook, away }));
        }
    }
    steps
}

/// The workload dials in and is away: what that means.
pub(super) fn away(state: &State, member: &Member, workload: &Workload) -> Option<OnAbsent> {
    let is_absent = state.replicas.get(&member.vm).is_some_and(|replica| replica.is_absent(workload));
    is_absent.then_some(workload.on_absent)
}

/// Who may be the primary of its group as far as anybody knows; `is_led` says that another affected member is known to
/// be. A failover that was begun stays this member's business, whatever it is by now.
fn may_be_primary(state: &State, event: &Event, member: &Member, is_led: bool) -> bool {
    let is_begun = || event.attempts.iter().any(|each| each.member == *member && each.hook.phase == Phase::Failover);
    match state.role(member) {
        Role::Primary => true,
        Role::Unknown => !is_led || is_begun(),
        Role::Replica => is_begun(),
    }
}

fn applies(event: &Event, treatment: &Treatment, hook: &Hook) -> bool {
    // An impact that has begun has taken the affected VM already.
    if event.entered_at(Stage::Started) == Some(event.first_seen()) && hook.runs_on == RunsOn::Affected {
        return false;
    }
    wants(event, hook) && is_worth_it(event, treatment, hook)
}

pub(super) fn wants(event: &Event, hook: &Hook) -> bool {
    hook.kinds.is_empty() || hook.kinds.contains(&event.announcement.kind)
}

fn is_worth_it(event: &Event, treatment: &Treatment, hook: &Hook) -> bool {
    if event.announcement.kind != Kind::Freeze {
        return true;
    }
    let known_short = event.announcement.duration.filter(|duration| *duration < LONG_FREEZE);
    match (hook.min_freeze, known_short) {
        (Some(least), Some(duration)) => least <= duration,
        (None, _) => !treatment.only_named_freezes,
        (Some(_), None) => true,
    }
}

/// The notice is long enough for a hook that is left out otherwise.
fn holds(event: &Event, treatment: &Treatment, hook: &Hook) -> bool {
    let notice = event.notice_ends().minus(treatment.margin).since(event.preparation_starts());
    !hook.optional_if_short || notice >= hook.worst.unwrap_or(hook.timeout)
}

fn is_tried(event: &Event, member: &Member, id: HookId) -> bool {
    event.attempts_of(member, id).next().is_some()
}
