//! The kinds of hooks, each behind one trait, so that the contract is one list of cases (`contract.rs`). Another kind
//! is another file here, and a line in that list.

pub(crate) mod command;
pub(crate) mod http;
pub(crate) mod session;

use std::ops::Deref;
use std::sync::Arc;

use allclear::hooks::session::Sessions;
use allclear::hooks::{AttemptState, HookOutcome, HookReport, HookRunner, HookTask};
use serde_json::Value;
use tokio::sync::mpsc::Receiver;

use crate::workloads::bench::{ATTEMPT, Bench};

/// Progress reported by `Behaviour::Patient` during its wait, and the number of seconds announced as still needed.
pub(crate) const PROGRESS: &str = "3 of 7 tables";
pub(crate) const EXPECTS: f64 = 90.5;
/// Text repeated by `Behaviour::Floods` on one line.
pub(crate) const FLOOD: &str = "all work and no play ";
pub(crate) const FLOODS: usize = 2000;

#[derive(Clone)]
pub(crate) enum Behaviour {
    /// The hook ends at once.
    Ends(HookOutcome),
    /// The hook reports its progress, and is done when released with `let_go`.
    Patient,
    /// The hook reports 40 KB of progress, and fails for a reason as long.
    Floods,
}

/// A replica's hook runner, with all resources for its operation.
pub(crate) type Replica = Box<dyn Deref<Target = HookRunner>>;

/// A hook of one kind, and a record of all requests to the hook.
pub(crate) trait Kind: Sized {
    async fn that(behaviour: Behaviour) -> Self;

    /// A replica in this process, with the state left over from a previous run.
    async fn open(&self) -> (Replica, Receiver<HookReport>);

    fn ask(&self, replica: &Replica, task: &HookTask);

    /// Runs the hook from a replica in another process, and kills this replica as soon as the hook runs.
    async fn ask_and_be_killed(&self);

    /// A replica that was opened after the other was killed knows the attempt as running.
    async fn finds_it_running(&self, replica: &Replica) {
        assert_eq!(replica.known(ATTEMPT), Some(AttemptState::Running));
    }

    fn let_go(&self);

    /// The number of runs begun so far.
    fn runs(&self) -> usize;

    /// The facts last passed to the hook.
    async fn told(&self) -> Value;

    /// Returns once the hook was asked to end before its own end.
    async fn is_told_to_end(&self);
}

/// A replica that runs commands, without session workloads.
pub(crate) fn of_commands(bench: &Bench) -> (Replica, Receiver<HookReport>) {
    let (commands, reports) = bench.open();
    let (sessions, _) = Sessions::open(Arc::new(allclear::replica::clock::now));
    (Box::new(Box::new(HookRunner::new(commands, sessions))), reports)
}
