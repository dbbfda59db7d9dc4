//! Runs every kind of hook.

use super::command::{HookCommand, Runner};
use super::session::{Dispatch, Sessions};
use super::{AttemptState, Deadline, HookTask};
use allclear_core::model::time::Timestamp;

/// The way in which an attempt is run.
#[derive(Clone, Debug)]
pub enum HookCall {
    Command(HookCommand),
    /// By a connected session workload.
    Session(Dispatch),
}

/// Runs an attempt in one way only: the first requested way is kept.
pub struct HookRunner {
    pub commands: Runner,
    pub sessions: Sessions,
}

impl HookRunner {
    pub fn new(commands: Runner, sessions: Sessions) -> Self {
        Self { commands, sessions }
    }

    /// Runs the attempt, unless the attempt is known: then a running attempt continues, and an ended attempt is
    /// reported again.
    pub fn run(&self, task: &HookTask, call: &HookCall) {
        match call {
            HookCall::Command(command) => self.commands.run(task, command),
            HookCall::Session(terms) => self.sessions.run(task, *terms),
        }
    }

    /// Ends a running attempt.
    pub fn cancel(&self, attempt: &str) {
        if self.commands.known(attempt).is_some() {
            self.commands.cancel(attempt);
        } else {
            self.sessions.cancel(attempt);
        }
    }

    pub fn known(&self, attempt: &str) -> Option<AttemptState> {
        self.commands.known(attempt).or_else(|| self.sessions.known(attempt))
    }

    /// All known attempts, to find attempts without a use in the cluster.
    pub fn attempts(&self) -> Vec<(String, AttemptState)> {
        let mut attempts = self.commands.attempts();
        attempts.extend(self.sessions.attempts());
        attempts
    }

    /// Forgets an attempt with a committed outcome.
    pub fn forget(&self, attempt: &str) {
        self.commands.forget(attempt);
        self.sessions.forget(attempt);
    }

    /// Takes the deadline of the log for a running attempt; `as_logged` is in the cluster's time. A command keeps its
    /// first deadline, so the command is ended if the attempt is over earlier.
    pub fn change_deadline(&self, attempt: &str, as_logged: Timestamp, deadline: Deadline, is_over: bool) {
        if self.commands.known(attempt).is_none() {
            self.sessions.change_deadline(attempt, as_logged, deadline);
        } else if is_over {
            self.commands.cancel(attempt);
        }
    }
}
