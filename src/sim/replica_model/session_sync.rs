//! Keeps the log up to date about the workloads of this VM: the role of the configured workload, and the session
//! workload, as `replica::roles` and `replica::presences`.

use std::time::Duration;

use super::ModelContext;
use crate::tasks::SignalChanges;
use allclear_core::model::command::{Command, DeregisterSession, RegisterSession, UpdateConditions};
use allclear_core::model::workload::{Condition, Role};

const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

pub(super) async fn keep(here: ModelContext) {
    let signals = &here.process.signals;
    loop {
        let news = SignalChanges::of([&signals.presence, &signals.changed]);
        let mut is_done = true;
        for command in due(&here) {
            is_done &= here.propose(&command).await.is_ok();
        }
        here.wait(news, (!is_done).then_some(TRY_AGAIN_AFTER)).await;
    }
}

/// The changes not in the log yet.
fn due(here: &ModelContext) -> Vec<Command> {
    let state = here.state();
    let node = &here.world.nodes[here.me];
    let Some(known) = state.replicas.get(here.name()) else { return Vec::new() };
    let mut commands = Vec::new();
    let mut conditions = Vec::new();
    let role = node.role.get();
    for workload in known.workloads.iter().filter(|workload| workload.group.is_some()) {
        if known.condition(&workload.name).role != role {
            conditions.push((workload.name.clone(), Condition { role, ..known.condition(&workload.name) }));
        }
    }
    if let Some(guest) = node.guest.borrow().as_ref() {
        let name = &guest.workload.name;
        let listed = known.sessions.get(name);
        if !guest.is_here && guest.says_farewell && listed.is_some() {
            commands.push(Command::DeregisterSession(DeregisterSession { workload: name.clone(), forced: false }));
        } else if guest.is_here && listed.is_none_or(|listed| !listed.is_same_registration(&guest.workload)) {
            commands.push(Command::RegisterSession(RegisterSession { workload: guest.workload.clone() }));
        }
        let condition = Condition { role: Role::Unknown, connected: guest.is_here, ..Condition::default() };
        if listed.is_some() && !guest.says_farewell && known.condition(name) != condition {
            conditions.push((name.clone(), condition));
        }
    }
    commands.extend((!conditions.is_empty()).then_some(Command::UpdateConditions(UpdateConditions { conditions })));
    commands
}
