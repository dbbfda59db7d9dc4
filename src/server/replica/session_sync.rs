//! Proposes changes of session workloads to the log: registrations, connections and roles. Changes of one moment become
//! one entry.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::cluster::ClusterHandle;
use super::hook_executor::HookExecutor;
use crate::hooks::session::{SessionRegistration, Sessions};
use allclear_core::model::command::{Command, DeregisterSession, RegisterSession, UpdateConditions};
use allclear_core::model::id::WorkloadName;
use allclear_core::model::state::Replica;
use allclear_core::model::workload::Condition;

/// Changes within this duration are recorded together.
const GATHER: Duration = Duration::from_millis(100);
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Expects the workloads known to the log, which may reconnect to this run of the replica.
pub(super) fn expect_the_known(cluster: &ClusterHandle, sessions: &Sessions) {
    let state = cluster.state();
    let Some(me) = state.replicas.get(&cluster.node.name) else {
        return;
    };
    sessions.expect(me.sessions.values().map(|workload| (workload, me.condition(&workload.name))));
}

/// Runs until `stop` is cancelled.
pub(super) async fn sync_sessions(cluster: Arc<ClusterHandle>, hooks: Arc<HookExecutor>, stop: CancellationToken) {
    let mut changes = hooks.runner.sessions.changes();
    let mut state = cluster.committed.clone();
    let mut keeping = async || {
        loop {
            changes.mark_unchanged();
            state.mark_unchanged();
            let is_done = record(&cluster, &hooks.runner.sessions).await;
            tokio::select! {
                _ = changes.changed() => {}
                // A snapshot may know less than was recorded.
                _ = state.changed() => {}
                () = tokio::time::sleep(TRY_AGAIN_AFTER), if !is_done => {}
            }
            tokio::time::sleep(GATHER).await;
        }
    };
    stop.run_until_cancelled(keeping()).await;
}

/// False when a change could not be recorded.
async fn record(cluster: &ClusterHandle, sessions: &Sessions) -> bool {
    expect_the_known(cluster, sessions);
    let Some(me) = cluster.state().replicas.get(&cluster.node.name).cloned() else {
        return true;
    };
    let presences = sessions.presences();
    for presence in presences.iter().filter(|presence| presence.is_due_to_go || !presence.has_dialled) {
        if !me.sessions.contains_key(&presence.workload.name) {
            sessions.deregister(&presence.workload.name);
        }
    }
    let given_no_more = cluster.state().no_longer_granted(&cluster.node.name, &cluster.node.grants);
    let due = due(&me, &presences, &given_no_more);
    for command in due {
        match cluster.propose(&command).await {
            Ok(verdict) => {
                tracing::debug!(command = command.as_str(), ?verdict, "sessions recorded");
                tell_of_one_given_no_more(&command, &given_no_more);
            }
            Err(error) => {
                tracing::debug!(command = command.as_str(), %error, "sessions not recorded yet");
                return false;
            }
        }
    }
    true
}

/// Logs once each workload that is no longer permitted, however long the record took.
fn tell_of_one_given_no_more(recorded: &Command, given_no_more: &[WorkloadName]) {
    if let Command::DeregisterSession(DeregisterSession { workload, .. }) = recorded
        && given_no_more.contains(workload)
    {
        tracing::warn!(%workload, "session workload not permitted by the configuration any more");
    }
}

/// The commands for changes not in the log yet.
fn due(me: &Replica, presences: &[SessionRegistration], given_no_more: &[WorkloadName]) -> Vec<Command> {
    let mut commands: Vec<_> = given_no_more
        .iter()
        .map(|name| Command::DeregisterSession(DeregisterSession { workload: name.clone(), forced: true }))
        .collect();
    let mut conditions = Vec::new();
    let given = |presence: &&SessionRegistration| !given_no_more.contains(&presence.workload.name);
    for SessionRegistration { workload, role, connected, has_dialled, is_due_to_go } in presences.iter().filter(given) {
        let name = &workload.name;
        let known = me.sessions.get(name);
        if *is_due_to_go && known.is_some() {
            // Refused while an event needs the workload, and proposed again after each change.
            commands.push(Command::DeregisterSession(DeregisterSession { workload: name.clone(), forced: false }));
        } else if !is_due_to_go
            && *has_dialled
            && *connected
            && !known.is_some_and(|known| known.is_same_registration(workload))
        {
            commands.push(Command::RegisterSession(RegisterSession { workload: workload.clone() }));
        }
        let condition = Condition { role: *role, connected: *connected, ..me.condition(name) };
        let is_here = !is_due_to_go && *has_dialled && *connected;
        if (known.is_some() || is_here) && me.condition(name) != condition {
            conditions.push((name.clone(), condition));
        }
    }
    if !conditions.is_empty() {
        commands.push(Command::UpdateConditions(UpdateConditions { conditions }));
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;
    use allclear_core::model::workload::{OnAbsent, Origin, Role, Workload};

    fn workload(name: &str) -> Workload {
        Workload {
            name: WorkloadName(name.into()),
            group: None,
            after: Vec::new(),
            hooks: Vec::new(),
            origin: Origin::Session { owner: 0 },
            on_absent: OnAbsent::Hold,
        }
    }

    fn with(dialled: impl IntoIterator<Item = Workload>) -> Replica {
        let dialled = dialled.into_iter().map(|workload| (workload.name.clone(), workload)).collect();
        Replica { sessions: dialled, ..Replica::default() }
    }

    fn presence(name: &str, role: Role, connected: bool) -> SessionRegistration {
        SessionRegistration { workload: workload(name), role, connected, has_dialled: true, is_due_to_go: false }
    }

    fn words(me: &Replica, presences: &[SessionRegistration]) -> Vec<&'static str> {
        due(me, presences, &[]).iter().map(Command::as_str).collect()
    }

    #[test]
    fn what_many_say_at_once_is_noted_in_one_entry() {
        let presences: Vec<_> = (0..64).map(|number| presence(&format!("w{number}"), Role::Primary, true)).collect();
        let me = with(presences.iter().map(|known| known.workload.clone()));
        assert_eq!(words(&me, &presences), ["update_conditions"]);
    }

    #[test]
    fn what_the_log_says_already_is_not_said_again() {
        let me = with([workload("a"), workload("b")]);
        let known = [presence("a", Role::Unknown, true), presence("b", Role::Unknown, true)];
        assert_eq!(words(&me, &known), [""; 0]);
        assert_eq!(words(&me, &[presence("a", Role::Unknown, false)]), ["update_conditions"]);
    }

    #[test]
    fn who_is_there_and_not_in_the_log_is_enlisted_and_who_stayed_away_too_long_is_taken_off() {
        let me = with([workload("gone")]);
        let gone = SessionRegistration { is_due_to_go: true, ..presence("gone", Role::Unknown, false) };
        // The registration may have to stay, so the log learns that nobody is there.
        assert_eq!(
            words(&me, &[gone, presence("new", Role::Unknown, true)]),
            ["deregister_session", "register_session", "update_conditions"]
        );
        let expected = SessionRegistration { has_dialled: false, ..presence("taken-off", Role::Primary, true) };
        assert_eq!(words(&me, &[expected]), [""; 0], "only who dials in is enlisted");
        assert_eq!(words(&me, &[presence("never-came", Role::Primary, false)]), [""; 0]);
    }
}
