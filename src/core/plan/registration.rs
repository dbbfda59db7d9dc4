//! Members of an event whose replica has yet to register its workloads. Hooks of these members are unknown until then.

use crate::model::blocker::Blocker;
use crate::model::claim::Reason;
use crate::model::event::Event;
use crate::model::id::VmName;
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::{Timestamp, to_the_second};
use crate::plan::placement::unreachable_replica_given_up_at;
use crate::planning_input::PlanningInput;

/// The blocker of an event that may otherwise be claimed for this reason, because the reason rests on the
/// registrations. The membership is not in the log, so `apply` cannot check this.
pub(crate) fn unregistered_blocker(
    state: &State,
    event: &Event,
    reason: Reason,
    input: &PlanningInput,
) -> Option<Blocker> {
    // A decision stays once the platform may have received the approval. A withdrawn claim sent nothing.
    if !matches!(reason, Reason::Prepared | Reason::NothingToPrepare) || event.reason_to_repeat().is_some() {
        return None;
    }
    let unknown = input.members.iter().filter(|vm| !state.replicas.contains_key(*vm) && event.affects(vm));
    let mut awaited = unknown.filter(|vm| !is_deleted(state, event, vm)).filter_map(|replica| {
        let passed_over_at = registration_waived_at(event, replica, input);
        let is_awaited = passed_over_at.is_none_or(|at| input.now < at);
        let passed_over_at = passed_over_at.map(to_the_second);
        is_awaited.then(|| Blocker::Unregistered { replica: replica.clone(), passed_over_at })
    });
    awaited.next()
}

/// The machine of the announcement does not exist any more; its replica was forgotten.
fn is_deleted(state: &State, event: &Event, vm: &VmName) -> bool {
    let deleted_it = |other: &Event| {
        let at = other.entered_at(Stage::Started).or(other.over_at());
        other.departed.contains(vm) && at.is_some_and(|at| at >= event.first_seen())
    };
    state.events().any(deleted_it)
}

/// No wait exceeds the budget; and a user reboots a machine because the machine hangs.
fn registration_waived_at(event: &Event, replica: &VmName, input: &PlanningInput) -> Option<Timestamp> {
    let silence_ends = unreachable_replica_given_up_at(replica, input).filter(|_| event.is_user_initiated());
    silence_ends.into_iter().chain(event.approved_without_hooks_at()).min()
}
