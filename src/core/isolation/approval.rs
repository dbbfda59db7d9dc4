//! Approval without a quorum: the events approved by an isolated replica itself, and when; and the blockers overridden
//! by an operator's approval there. Only one of a pair approves by itself (`SPEC.md` 7): a user-initiated event that
//! names only the VM of the unreachable replica, one event of a group at a time, and never while a committed hook may
//! still run, or while its own member is out of service.

use crate::model::attempt::ENDED_WITHIN;
use crate::model::claim::PostOutcome;
use crate::model::document::{Announcement, Source, Status};
use crate::model::event::Event;
use crate::model::id::{EventId, VmName, WorkloadName};
use crate::model::isolated_approval::{IsolatedApproval, JOURNAL_LIMIT, RequestedBy};
use crate::model::isolated_blocker::{ApprovalForecast, IsolatedBlocker};
use crate::model::isolation::IsolatedView;
use crate::model::state::{OPEN_LIMIT, State};
use crate::model::time::Timestamp;
use crate::model::treatment;
use crate::model::treatment::Action;
use crate::model::workload::{Readiness, Workload};
use crate::planning_input::PlanningInput;
use crate::policy;
use crate::schedule::failure;
use crate::schedule::groups;
use alloc::vec::Vec;
use core::time::Duration;

/// Pause before a post that was not accepted is repeated; doubled with each repetition, up to `AGAIN_AFTER_AT_MOST`.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

const AGAIN_AFTER_AT_MOST: Duration = Duration::from_mins(5);

impl IsolatedApproval {
    /// The approval that `input.me` is about to write to the journal.
    pub fn begun(input: &PlanningInput, requested_by: Option<RequestedBy>) -> Self {
        let isolated = input.isolated.clone().unwrap_or_default();
        let last = isolated.journal.iter().map(|entry| entry.approval.at).max();
        Self {
            approver: input.me.clone(),
            at: last.map_or(input.now, |last| input.now.max(last.plus(Duration::from_millis(1)))),
            alone_since: isolated.since,
            out_of_reach: isolated.unreachable_voters(&input.me),
            requested_by,
            outcome: None,
            recorded: None,
        }
    }
}

/// Whether and when `input.me` approves the event isolated; `None` while `input.me` follows a leader.
pub fn forecast(state: &State, input: &PlanningInput, id: &EventId) -> Option<ApprovalForecast> {
    let isolated = input.isolated.as_ref()?;
    let state = &isolated.with_unapplied(state);
    Some(match first_blocker(state, input, isolated, id) {
        Some(obstacle) => ApprovalForecast::Not(obstacle),
        None => earliest(state, input, isolated, id),
    })
}

/// The event that `input.me` approves alone now.
pub fn event_to_approve<'a>(state: &State, input: &'a PlanningInput) -> Option<&'a Announcement> {
    let listed = input.isolated.as_ref()?.document.iter().flat_map(|document| &document.events);
    let is_due = |announced: &&Announcement| match forecast(state, input, &announced.id) {
        Some(ApprovalForecast::From(at)) => at <= input.now,
        Some(ApprovalForecast::Not(_)) | None => false,
    };
    listed.filter(|announced| announced.source == Source::User).find(is_due)
}

/// The blockers that an operator overrides by an approval on `input.me`, which follows no leader; an error if no
/// operator can override. `None` while `input.me` follows a leader.
pub fn blockers_to_override(
    state: &State,
    input: &PlanningInput,
    id: &EventId,
) -> Option<Result<Vec<IsolatedBlocker>, IsolatedBlocker>> {
    let isolated = input.isolated.as_ref()?;
    let state = &isolated.with_unapplied(state);
    let ready_at = isolated.since.plus(input.timing.takeover_after);
    let too_soon = || (input.now < ready_at).then_some(IsolatedBlocker::TooSoon(ready_at));
    Some(match absolute_blocker(state, input, isolated, id).or_else(too_soon) {
        Some(obstacle) => Err(obstacle),
        None => Ok(overridable_blockers(state, input, isolated, id)),
    })
}

/// The first blocker of an approval by this replica itself, apart from time.
fn first_blocker(
    state: &State,
    input: &PlanningInput,
    isolated: &IsolatedView,
    id: &EventId,
) -> Option<IsolatedBlocker> {
    let not_a_pair = || (!isolated.is_one_of_a_pair()).then_some(IsolatedBlocker::NotAPair);
    let objection = || {
        let mut all = overridable_blockers(state, input, isolated, id).into_iter();
        all.find(|objection| !matches!(objection, IsolatedBlocker::HookMayRun(_)))
    };
    absolute_blocker(state, input, isolated, id).or_else(not_a_pair).or_else(objection)
}

/// The blocker of an approval both by this replica and by an operator here.
fn absolute_blocker(
    state: &State,
    input: &PlanningInput,
    isolated: &IsolatedView,
    id: &EventId,
) -> Option<IsolatedBlocker> {
    let me = &input.me;
    let known = state.open_event(id);
    let is_scheduled = isolated.listed(id).is_some_and(|announced| announced.status == Status::Scheduled);
    if !is_scheduled || known.is_some_and(Event::is_drill) {
        return Some(IsolatedBlocker::NotScheduled);
    }
    if !isolated.voters.contains(me) {
        return Some(IsolatedBlocker::NoVoter);
    }
    if known.is_none() && state.open.len() >= OPEN_LIMIT {
        return Some(IsolatedBlocker::NotTakenUp);
    }
    let mut tried = own_approvals(state, isolated, me).filter(|(of, _)| *of == id);
    if known.is_some_and(Event::is_accepted) || tried.any(|(_, it)| it.outcome_is(&PostOutcome::Accepted)) {
        return Some(IsolatedBlocker::Approved);
    }
    if isolated.journal.len() >= JOURNAL_LIMIT {
        return Some(IsolatedBlocker::JournalFull);
    }
    let led = isolated.reached.iter().find(|(_, peer)| peer.leader.is_some());
    led.map(|(name, _)| IsolatedBlocker::LedElsewhere(name.clone()))
}

/// Blockers of the event known to this replica; an operator may override these blockers.
fn overridable_blockers(
    state: &State,
    input: &PlanningInput,
    isolated: &IsolatedView,
    id: &EventId,
) -> Vec<IsolatedBlocker> {
    let Some(announced) = isolated.listed(id) else { return Vec::new() };
    let known = state.open_event(id);
    let treatment = known.and_then(|event| event.treatment.clone()).unwrap_or_else(|| chosen(input, announced));
    let failed = known.is_some_and(|event| {
        let is_held = failure::holding_failure(state, event, input.now).is_some();
        is_held || failure::is_retry_unproven(state, event, input.now)
    });
    let mut others =
        own_approvals(state, isolated, &input.me).filter(|(of, it)| *of != id && it.may_have_been_posted());
    let approved = others.find(|(of, _)| isolated.listed(of).is_some());
    let running_until = hooks_may_run_until(input, isolated, known).filter(|until| input.now < *until);
    let objections = [
        (announced.source != Source::User).then_some(IsolatedBlocker::NotUserInitiated),
        // By log time, which is never ahead of cluster time: this replica expires a hold or pause no earlier than the
        // cluster.
        known.and_then(|event| event.hold(isolated.log_time)).map(IsolatedBlocker::Held),
        state.pause(isolated.log_time).map(IsolatedBlocker::Paused),
        (treatment.action == Action::Observe).then_some(IsolatedBlocker::Observed),
        failed.then_some(IsolatedBlocker::HookFailed),
        other_event(state, input, isolated, announced).map(IsolatedBlocker::OtherEvent),
        approved.map(|(other, _)| IsolatedBlocker::OtherApproval(other.clone())),
        takes_more_away(isolated, &input.me, announced).map(IsolatedBlocker::TakesMoreAway),
        own_member_out(state, isolated, &input.me).map(IsolatedBlocker::OwnMemberOut),
        running_until.map(IsolatedBlocker::HookMayRun),
    ];
    objections.into_iter().flatten().collect()
}

/// A VM of the event that is no unreachable voter. To bring the lost machine back, a user names only this machine; a
/// reboot of the only remaining VM removes the last member.
fn takes_more_away(isolated: &IsolatedView, me: &VmName, announced: &Announcement) -> Option<VmName> {
    let lost = isolated.unreachable_voters(me);
    announced.resources.iter().find(|vm| !lost.contains(vm)).cloned()
}

/// A workload of a group on this VM, out of service by its last readiness answer or by the log.
fn own_member_out(state: &State, isolated: &IsolatedView, me: &VmName) -> Option<WorkloadName> {
    let own = state.workloads().filter(|(vm, workload)| *vm == me && workload.group.is_some());
    let is_out = |workload: &Workload| {
        let member = workload.on(me);
        let answered = isolated.readiness.get(&workload.name);
        let is_unready = || state.not_serving_since(&member).is_some();
        state.slots.contains_key(&member) || answered.map_or_else(is_unready, |it| *it == Readiness::NotReady)
    };
    own.map(|(_, workload)| workload).find(|workload| is_out(workload)).map(|workload| workload.name.clone())
}

fn chosen(input: &PlanningInput, announced: &Announcement) -> treatment::Treatment {
    policy::treatment_of(&input.policy, announced, &input.members, input.now)
}

/// Isolated approvals of this replica, from the log and the journal.
fn own_approvals<'a>(
    state: &'a State,
    isolated: &'a IsolatedView,
    me: &'a VmName,
) -> impl Iterator<Item = (&'a EventId, &'a IsolatedApproval)> {
    let logged =
        state.open_events().flat_map(|event| event.isolated_approvals.iter().map(|it| (&event.announcement.id, it)));
    let journaled = isolated.journal.iter().map(|entry| (&entry.announcement.id, &entry.approval));
    logged.filter(move |(_, takeover)| takeover.approver == *me).chain(journaled)
}

/// Another event that affects members of the same group: a listed event, or an event whose members, by the log, have
/// yet to be restored. An unlisted event counts only if the event affects another VM: a machine already gone is not
/// taken away once more.
fn other_event(
    state: &State,
    input: &PlanningInput,
    isolated: &IsolatedView,
    announced: &Announcement,
) -> Option<EventId> {
    let known = |vm: &&VmName| input.members.contains(vm) || state.replicas.contains_key(vm);
    let ours = |vms: &[VmName]| -> Vec<VmName> { vms.iter().filter(known).cloned().collect() };
    let own = ours(&announced.resources);
    let is_near = |vms: &[VmName]| groups::share_a_group(state, &own, &ours(vms));
    let takes_more = |vms: &[VmName]| vms.iter().any(|vm| !announced.resources.contains(vm));
    let mut listed = isolated.document.iter().flat_map(|document| &document.events);
    let listed = listed.find(|other| other.id != announced.id && is_near(&other.resources));
    let open = || {
        let unlisted = state.open_events().filter(|event| event.announcement.id != announced.id && !event.is_drill());
        unlisted.map(|event| (&event.announcement.id, taken_by(event))).find(|(_, vms)| is_near(vms) && takes_more(vms))
    };
    listed.map(|other| other.id.clone()).or_else(|| open().map(|(id, _)| id.clone()))
}

/// The VMs of an event, and the VMs of members with attempts of the event.
fn taken_by(event: &Event) -> Vec<VmName> {
    let touched = event.attempts.iter().map(|attempt| &attempt.member.vm);
    event.announcement.resources.iter().chain(touched).cloned().collect()
}

/// The end of the wait. Documents agree within half of `takeover_after`: so the wait of an event also covers the time
/// in which another event of its group would appear.
fn earliest(state: &State, input: &PlanningInput, isolated: &IsolatedView, id: &EventId) -> ApprovalForecast {
    let seen = isolated.seen_since.get(id).copied().unwrap_or(input.now);
    let at = isolated.since.max(seen).plus(input.timing.takeover_after);
    let running_until = hooks_may_run_until(input, isolated, state.open_event(id));
    let tried: Vec<&IsolatedApproval> =
        own_approvals(state, isolated, &input.me).filter(|(of, _)| *of == id).map(|(_, it)| it).collect();
    let last = tried.iter().map(|it| it.outcome.as_ref().map_or(it.at, |(_, at)| *at)).max();
    let again = last.map(|last| last.plus(post_retry_delay(tried.len())));
    let waits = running_until.into_iter().chain(again);
    ApprovalForecast::From(waits.fold(at, Timestamp::max))
}

/// The time by which the last committed hook has certainly ended, on this replica's clock: deadlines are in log time.
fn hooks_may_run_until(input: &PlanningInput, isolated: &IsolatedView, event: Option<&Event>) -> Option<Timestamp> {
    let in_own_time =
        |moment: Timestamp| input.now.plus(moment.since(isolated.log_time)).minus(isolated.log_time.since(moment));
    let running = event?.attempts.iter().filter(|attempt| attempt.outcome.is_none());
    running.map(|attempt| in_own_time(attempt.deadline.plus(ENDED_WITHIN))).max()
}

fn post_retry_delay(tries: usize) -> Duration {
    let doublings = u32::try_from(tries.saturating_sub(1)).unwrap_or(u32::MAX).min(6);
    (AGAIN_AFTER * (1 << doublings)).min(AGAIN_AFTER_AT_MOST)
}
