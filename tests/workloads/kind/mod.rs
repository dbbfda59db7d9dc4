//! The kinds of hooks, each behind the same face, so that the contract is one list of cases (`contract.rs`).
//! Another kind is another file here, and a line in that list.

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

/// What `Behaviour::Patient` says while it waits, and how many seconds it says it needs.
pub(crate) const PROGRESS: &str = "3 of 7 tables";
pub(crate) const EXPECTS: f64 = 90.5;
/// What `Behaviour::Floods` says again and again, on one line.
pub(crate) const FLOOD: &str = "all work and no play ";
pub(crate) const FLOODS: usize = 2000;

#[derive(Clone)]
pub(crate) enum Behaviour {
    /// Ends at once.
    Ends(HookOutcome),
    /// Tells its progress, and is done when it is let go.
    Patient,
    /// Says 40 KB of progress, and fails for a reason as long.
    Floods,
}

/// A replica's way to hooks, with whatever keeps it going.
pub(crate) type Replica = Box<dyn Deref<Target = HookRunner>>;

/// A hook of one kind, and all that it was asked.
pub(crate) trait Kind: Sized {
    async fn that(behaviour: Behaviour) -> Self;

    /// A replica in this process, with what an earlier one left.
    async fn open(&self) -> (Replica, Receiver<HookReport>);

    fn ask(&self, replica: &Replica, task: &HookTask);

    /// Asks from a replica in a process of its own, and kills that as soon as the hook runs.
    async fn ask_and_be_killed(&self);

    /// A replica that was opened after the other was killed knows that it runs.
    async fn finds_it_running(&self, replica: &Replica) {
        assert_eq!(replica.known(ATTEMPT), Some(AttemptState::Running));
    }

    fn let_go(&self);

    /// How often it was begun.
    fn runs(&self) -> usize;

    /// The facts it was last given.
    async fn told(&self) -> Value;

    /// Returns when it was told to end before it had ended by itself.
    async fn is_told_to_end(&self);
}

/// A replica that runs commands, and that nobody dials.
pub(crate) fn of_commands(bench: &Bench) -> (Replica, Receiver<HookReport>) {
    let (commands, reports) = bench.open();
    let (sessions, _) = Sessions::open(Arc::new(allclear::replica::clock::now));
    (Box::new(Box::new(HookRunner::new(commands, sessions))), reports)
}
