//! Polls the roles of this VM's configured workloads, and proposes changes to the log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::clock;
use super::cluster::ClusterHandle;
use super::latest_answers::{Fault, LatestFaults, LatestRoles};
use super::polls;
use crate::hooks::{HookEnvironment, RoleSource};
use allclear_core::model::command::{Command, UpdateConditions};
use allclear_core::model::id::{EventId, GroupName, WorkloadName};
use allclear_core::model::state::State;
use allclear_core::model::workload::{Condition, Origin, Role};

/// The number of intervals without an answer after which the last answer is void.
const KEEP_FOR: u32 = 3;
/// The maximum duration of an answer. A program that takes 0.2 s on an idle VM took longer than 2 s on a busy one,
/// every time: the replica never knew a role, and an unknown role counts as a possible primary.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// The pause before an unrecorded role is proposed again.
const NOTE_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// A workload whose role is polled.
#[derive(Clone, Debug)]
pub struct PolledRole {
    pub workload: WorkloadName,
    pub group: Option<GroupName>,
    pub source: RoleSource,
    pub every: Duration,
}

/// Runs until `stop` is cancelled.
pub(super) async fn run(
    cluster: Arc<ClusterHandle>,
    latest: (Arc<LatestRoles>, Arc<LatestFaults>),
    surroundings: HookEnvironment,
    told: Vec<PolledRole>,
    stop: CancellationToken,
) {
    let polls =
        told.into_iter().map(|workload| ask_on(cluster.clone(), latest.clone(), surroundings.clone(), workload));
    polls::run_each(stop, polls).await;
}

async fn ask_on(
    cluster: Arc<ClusterHandle>,
    (kept, unknown): (Arc<LatestRoles>, Arc<LatestFaults>),
    surroundings: HookEnvironment,
    told: PolledRole,
) {
    let facts = facts(&cluster, &told);
    let mut state = cluster.committed.clone();
    let mut latest: Option<Role> = None;
    let mut answered = clock::monotonic();
    loop {
        let occasion = Occasion::of(&state.borrow_and_update(), &told.workload);
        match told.source.ask(&facts, &surroundings, ANSWER_WITHIN).await {
            Ok(role) => {
                (latest, answered) = (Some(role), clock::monotonic());
                unknown.keep(&told.workload, None);
            }
            Err(why) if clock::monotonic().since(answered) >= told.every * KEEP_FOR => {
                if latest != Some(Role::Unknown) {
                    tracing::warn!(workload = %told.workload, why, "role not received; the workload counts as a possible primary");
                }
                latest = Some(Role::Unknown);
                let known = unknown.all().remove(&told.workload).flatten();
                let since = known.map_or_else(|| cluster.time.now(), |known| known.since);
                unknown.keep(&told.workload, Some(Fault { since, why }));
            }
            Err(why) => tracing::debug!(workload = %told.workload, why, "role not received"),
        }
        if let Some(role) = latest {
            kept.keep(&told.workload, role);
        }
        let again = clock::monotonic().plus(told.every);
        loop {
            let due = latest.and_then(|role| due(&cluster, &told.workload, role));
            let is_noted = match &due {
                None => true,
                Some(note) => cluster.propose(note).await.is_ok(),
            };
            let left = again.since(clock::monotonic());
            let pause = if is_noted { left } else { left.min(NOTE_AGAIN_AFTER) };
            tokio::select! {
                _ = state.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
            let is_news = Occasion::of(&state.borrow_and_update(), &told.workload) != occasion;
            if is_news || clock::monotonic() >= again {
                break;
            }
        }
    }
}

/// The facts whose change causes a poll before the end of the interval.
#[derive(PartialEq)]
struct Occasion {
    open: Vec<EventId>,
    /// The number of ended attempts of workloads of this name, on any VM.
    ended: usize,
}

impl Occasion {
    fn of(state: &State, workload: &WorkloadName) -> Self {
        let attempts = state.open_events().flat_map(|event| &event.attempts);
        let ended = attempts.filter(|attempt| attempt.member.workload == *workload && attempt.outcome.is_some());
        Self { ended: ended.count(), open: state.open.keys().cloned().collect() }
    }
}

/// The command for a role not in the log yet. A session workload reports the role itself.
fn due(cluster: &ClusterHandle, name: &WorkloadName, role: Role) -> Option<Command> {
    let state = cluster.state();
    let replica = state.replicas.get(&cluster.node.name)?;
    let known = replica.condition(name);
    let is_ours = replica.workload(name)?.origin == Origin::Configured;
    let conditions = vec![(name.clone(), Condition { role, ..known })];
    (is_ours && known.role != role).then_some(Command::UpdateConditions(UpdateConditions { conditions }))
}

fn facts(cluster: &ClusterHandle, told: &PolledRole) -> BTreeMap<&'static str, String> {
    let group = told.group.as_ref().map(ToString::to_string).unwrap_or_default();
    BTreeMap::from([
        ("ALLCLEAR_WORKLOAD", told.workload.to_string()),
        ("ALLCLEAR_GROUP", group),
        ("ALLCLEAR_VM", cluster.node.name.to_string()),
    ])
}
