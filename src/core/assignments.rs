//! The hook attempts and the claims that the committed state assigns to one replica. `assignments` computes them anew
//! after every change of the state, and remembers nothing between two calls.

use crate::model::attempt::Attempt;
use crate::model::claim::Claim;
use crate::model::event::{Ending, Event};
use crate::model::id::{AttemptId, GroupName, VmName};
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::{Member, Phase, Workload};
use crate::planning_input::PlanningInput;
use crate::schedule::attempts;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

/// Impacts this close together count as one wave of maintenance.
const SAME_WAVE: Duration = Duration::from_hours(24);

/// A side effect that this replica has to carry out.
#[derive(Clone, Debug)]
pub enum Assignment<'a> {
    /// Run the attempt, unless the attempt runs or has ended already.
    Run {
        event: &'a Event,
        attempt: &'a Attempt,
        /// A vanished attempt is run once more under the same id: a restore is delivered at least once.
        restart_restore_if_lost: bool,
    },
    /// Stop the attempt if running; the attempt is no longer wanted.
    Cancel { event: &'a Event, attempt: &'a Attempt },
    /// Confirm the claim, fetch a fresh document, and post the approval if the document still shows the event as
    /// Scheduled.
    Post { event: &'a Event, claim: &'a Claim },
}

/// The current assignments of a replica.
pub fn assignments<'a>(state: &'a State, me: &VmName) -> Vec<Assignment<'a>> {
    let mut found = Vec::new();
    for event in state.open_events() {
        for attempt in event.attempts.iter().filter(|attempt| attempt.on == *me && attempt.outcome.is_none()) {
            found.push(if attempts::is_wanted(state, event, attempt) {
                Assignment::Run { event, attempt, restart_restore_if_lost: attempt.hook.phase >= Phase::Restore }
            } else {
                Assignment::Cancel { event, attempt }
            });
        }
        // A started event or an event that is over needs no post; for an event approved meanwhile only a repeated claim
        // is posted.
        let may_post = |claim: &&Claim| match event.stage() {
            Stage::Claimed => true,
            Stage::Approved => event.entered_at(Stage::Approved).is_some_and(|approved| approved < claim.at),
            _ => false,
        };
        let to_post = event.open_claim().filter(|claim| claim.approver == *me).filter(may_post);
        if let Some(claim) = to_post {
            found.push(Assignment::Post { event, claim });
        }
    }
    found
}

/// An open attempt that must not be started, because a previous run may have started the attempt, and the attempt may
/// still run: the replica has a new disk, and knows no attempts up to `up_to`. The attempt stays open until its end is
/// certain, so that no other attempt of the member starts in parallel. A session workload keeps its own record of
/// attempts.
pub fn predates_disk(state: &State, attempt: &Attempt, up_to: AttemptId) -> bool {
    attempt.id <= up_to && attempt.outcome.is_none() && !is_of_session(state, attempt)
}

/// Whether a session workload carries out the attempt.
pub fn is_of_session(state: &State, attempt: &Attempt) -> bool {
    let workload = state.replicas.get(&attempt.on).and_then(|replica| replica.workload(&attempt.member.workload));
    workload.is_some_and(Workload::is_session)
}

/// Bytes of the names of VMs outside this cluster among the VMs to avoid; events that name a VM of this cluster come
/// first. A hook gets all names in one environment variable, and Linux limits a variable to 128 KiB: with more, no hook
/// would start.
const AVOIDED_BYTES: usize = 32 << 10;

/// VMs to which the service of this workload's group must not move.
pub fn vms_to_avoid(state: &State, input: &PlanningInput, member: &Member) -> Vec<VmName> {
    vms_to_avoid_for_group(state, input, group_of(state, member))
}

/// VMs to which the service of a group must not move (R8b): VMs that an event takes out of service, VMs with an
/// unreachable replica, and VMs where a member of the group is out or not ready. Other VMs of events are allowed: with
/// every VM waiting for its turn, the first could not move.
pub fn vms_to_avoid_for_group(state: &State, input: &PlanningInput, group: Option<&GroupName>) -> Vec<VmName> {
    let taking = || state.open_events().filter(|event| takes_its_vms_soon(event));
    let is_away = |name: &VmName| {
        let replica = state.replicas.get(name).filter(|replica| group.is_some_and(|group| replica.has(group)));
        replica.zip(group).is_some_and(|(replica, group)| {
            let of_group = replica.effective().filter(|workload| workload.group.as_ref() == Some(group));
            !replica.is_connected(group)
                || of_group.into_iter().any(|it| state.out_of_service_cause(&it.on(name)).is_some())
        })
    };
    let unfit = |name: &&VmName| !input.reaches(name) || is_away(name) || taking().any(|event| event.affects(name));
    let mut avoided: BTreeSet<VmName> = input.members.iter().filter(unfit).cloned().collect();
    let mut left = AVOIDED_BYTES;
    for concerns_us in [true, false] {
        for event in taking().filter(|event| event.announcement.concerns(state) == concerns_us) {
            for name in event.announcement.resources.iter().filter(|name| !event.departed.contains(*name)) {
                let bytes = name.as_str().len() + 1;
                if bytes <= left && avoided.insert(name.clone()) {
                    left -= bytes;
                }
            }
        }
    }
    avoided.into_iter().collect()
}

/// The event takes its VMs out of service, or is about to.
fn takes_its_vms_soon(event: &Event) -> bool {
    let is_going = (Stage::Claimed..=Stage::Started).contains(&event.stage()) || event.has_isolated_approval();
    !event.stage().is_over()
        && (event.slots_since.is_some() || event.last_call_since.is_some() || event.is_dry_run() || is_going)
}

/// The preferred target VMs for this workload's group, best first (R8b): VMs of other members that no event names, first
/// those that a wave of maintenance has already passed, then VMs whose turn comes last.
pub fn preferred_vms(state: &State, input: &PlanningInput, member: &Member) -> Vec<VmName> {
    let avoided = vms_to_avoid(state, input, member);
    let group = group_of(state, member);
    let is_peer = |name: &VmName| {
        let replica = state.replicas.get(name).filter(|_| *name != member.vm);
        replica.is_some_and(|replica| group.is_some_and(|group| replica.is_connected(group)))
    };
    let last_impact = |name: &VmName| {
        let impacts =
            state.closed_events().filter(|event| event.affects(name) && event.ending == Some(Ending::Completed));
        impacts.filter_map(Event::over_at).max()
    };
    let turn = |name: &VmName| {
        let naming = state.open_events().filter(|event| event.affects(name) && !event.stage().is_over());
        naming.map(Event::notice_ends).min().unwrap_or(Timestamp(i64::MAX))
    };
    let mut preferred: Vec<(&VmName, Option<Timestamp>, Timestamp)> = input
        .members
        .iter()
        .filter(|name| is_peer(name) && !avoided.contains(name))
        .map(|name| (name, last_impact(name).filter(|at| input.now.since(*at) < SAME_WAVE), turn(name)))
        .collect();
    preferred.sort_by_key(|(_, impact, turn)| core::cmp::Reverse((*turn, *impact)));
    preferred.into_iter().map(|(name, ..)| name.clone()).collect()
}

fn group_of<'a>(state: &'a State, member: &Member) -> Option<&'a GroupName> {
    state.workload(member)?.group.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::document::tests::announced;
    use crate::model::document::{Announcement, Status};
    use crate::model::id::{EventId, WorkloadName};
    use crate::model::isolation::ImdsHealth;
    use crate::model::state::Replica;
    use crate::model::workload::{OnAbsent, Origin};
    use crate::planning_input::PeerHealth;

    #[test]
    fn the_names_to_avoid_fit_into_a_hooks_environment_and_those_of_our_events_come_first() {
        let me = VmName::new("db-0");
        let mut state = State::default();
        state.replicas.entry(me.clone()).or_default();
        let mut take = |id: &str, resources: Vec<VmName>| {
            let announcement = Announcement { resources, ..announced(id, Status::Started) };
            let mut event = Event::first_seen_as(announcement, me.clone(), Timestamp(1));
            event.slots_since = Some(Timestamp(1));
            state.open.insert(EventId::new(id), event.into());
        };
        take("a", (0..9_000).map(|number| VmName::new(&format!("somebody-elses-{number}"))).collect());
        take("z", ["db-0", "web-7"].map(VmName::new).into());
        let input = PlanningInput::of_members(std::slice::from_ref(&me), Timestamp(2));
        let avoided = vms_to_avoid(&state, &input, &Member { vm: me.clone(), workload: WorkloadName("pg".into()) });
        assert!(avoided.contains(&me) && avoided.contains(&VmName::new("web-7")));
        let bytes: usize = avoided.iter().map(|name| name.as_str().len() + 1).sum();
        assert!(bytes <= AVOIDED_BYTES + me.as_str().len() + 1, "{bytes}");
        assert!(bytes > AVOIDED_BYTES / 2, "others are named as well: {bytes}");
    }

    /// The primary would have to move a second time from the VM of an open event.
    #[test]
    fn a_vm_without_an_event_is_preferred_to_one_that_the_wave_has_passed() {
        let vms = ["db-0", "db-1", "db-2"].map(VmName::new);
        let mut state = State::default();
        for vm in &vms {
            let workloads = alloc::vec![Workload {
                name: WorkloadName("pg".into()),
                group: Some(GroupName("orders".into())),
                after: Vec::new(),
                hooks: Vec::new(),
                origin: Origin::Configured,
                on_absent: OnAbsent::Hold,
            }];
            state.replicas.insert(vm.clone(), Replica { workloads, ..Replica::default() }.into());
        }
        let of_db_1 = |id: &str| {
            let announcement = Announcement { resources: [vms[1].clone()].into(), ..announced(id, Status::Scheduled) };
            Event::first_seen_as(announcement, vms[0].clone(), Timestamp(1))
        };
        let mut input = PlanningInput::of_members(&vms, Timestamp(3));
        let contact = PeerHealth {
            reachable: true,
            since: Timestamp(0),
            imds: ImdsHealth::Healthy,
            imds_since: Timestamp(0),
            document_age: None,
            answers_in: Duration::ZERO,
            can_acknowledge: false,
            operator_seq: 0,
        };
        input.peers.extend(vms.iter().map(|vm| (vm.clone(), contact)));
        let member = Member { vm: vms[0].clone(), workload: WorkloadName("pg".into()) };
        let preferred = |state: &State| preferred_vms(state, &input, &member);
        let mut passed = of_db_1("e-1");
        passed.entered.extend([(Stage::Restoring, Timestamp(2)), (Stage::Closed, Timestamp(2))]);
        passed.ending = Some(Ending::Completed);
        state.history.push_back(passed.into());
        assert_eq!(preferred(&state), [vms[1].clone(), vms[2].clone()], "the wave has passed db-1");
        state.open.insert(EventId::new("e-2"), of_db_1("e-2").into());
        assert_eq!(preferred(&state), [vms[2].clone(), vms[1].clone()], "another event is to come");
    }
}
