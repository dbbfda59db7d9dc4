//! Runs every kind of hook.

use super::command::{HookCommand, Runner};
use super::session::{Dispatch, Sessions};
use super::{AttemptState, Deadline, HookTask};
use allclear_core::model::time::Timestamp;

/// How an attempt is run.
#[derive(Clone, Debug)]
pub enum HookCall {
    Command(HookCommand),
    /// By the workload itself, which dials in.
    Session(Dispatch),
}

/// An attempt is of one way only: whichever was asked for first keeps it.
pub struct HookRunner {
    pub commands: Runner,
    pub sessions: Sessions,
}

impl HookRunner {
    pub fn new(commands: Runner, sessions: Sessions) -> Self {
        Self { commands, sessions }
    }

    /// Runs it, unless that was asked before: then a running one goes on, and an ended one is reported again.
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

    /// Everything that is known, to find what the cluster no longer asks for.
    pub fn attempts(&self) -> Vec<(String, AttemptState)> {
        let mut attempts = self.commands.attempts();
        attempts.extend(self.sessions.attempts());
        attempts
    }

    /// The outcome is committed: nothing needs to be known any more.
    pub fn forget(&self, attempt: &str) {
        self.commands.forget(attempt);
        self.sessions.forget(attempt);
    }

    /// The log has this deadline for a running attempt, which is `as_logged` in the cluster's time. A command keeps the
    /// one that it was started with, so it is ended when it is over earlier.
    pub fn change_deadline(&self, attempt: &str, as_logged: Timestamp, deadline: Deadline, is_over: bool) {
        if self.commands.known(attempt).is_none() {
            self.sessions.change_deadline(attempt, as_logged, deadline);
        } else if is_over {
            self.commands.cancel(attempt);
        }
    }
}
