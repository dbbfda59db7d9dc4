//! One session workload: its outbox, its lease, and the attempts that it reported.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Hello, MAX_KNOWN, SessionRegistration, ToWorkload};
use crate::hooks::{AttemptState, HookOutcome};
use allclear_core::model::workload::{Condition, Role, Workload};

/// The time for a workload known to a previous run of the replica to connect again.
const EXPECTED_WITHIN: Duration = Duration::from_secs(30);

pub(super) struct Session {
    /// The current description. `known` is reduced to the attempts that this replica has not adopted yet.
    pub(super) greeting: Hello,
    pub(super) token: String,
    heard: Instant,
    /// The time at which the lease expired.
    pub(super) lapsed: Option<Instant>,
    /// The workload has ended the session itself, so it does not serve although the lease runs on.
    has_said_goodbye: bool,
    /// The registration is to be removed.
    pub(super) is_due_to_go: bool,
    line: Option<mpsc::Sender<ToWorkload>>,
    /// Attempts not adopted by this replica, whose workload was sent a cancel message.
    stopped: BTreeSet<String>,
}

impl Session {
    pub(super) fn new(greeting: Hello, token: String, line: mpsc::Sender<ToWorkload>, now: Instant) -> Self {
        let line = Some(line);
        Self {
            greeting,
            token,
            heard: now,
            lapsed: None,
            has_said_goodbye: false,
            is_due_to_go: false,
            line,
            stopped: BTreeSet::new(),
        }
    }

    /// A registered workload that has not connected to this run of the replica yet.
    pub(super) fn expected(workload: Workload, condition: Condition, now: Instant) -> Self {
        let greeting = Hello {
            workload,
            boot: String::new(),
            lease: EXPECTED_WITHIN,
            retain: None,
            role: condition.role,
            known: BTreeMap::new(),
            polls: false,
        };
        let lapsed = (!condition.connected).then_some(now);
        let (token, stopped) = (String::new(), BTreeSet::new());
        let (has_said_goodbye, is_due_to_go) = (false, false);
        Self { greeting, token, heard: now, lapsed, has_said_goodbye, is_due_to_go, line: None, stopped }
    }

    /// The workload counts as connected: it has a lease, and has not ended the session.
    pub(super) fn is_connected(&self) -> bool {
        self.lapsed.is_none() && !self.has_said_goodbye
    }

    /// Messages reach the workload, as far as can be determined.
    pub(super) fn is_live(&self) -> bool {
        self.lapsed.is_none() && self.line.as_ref().is_some_and(|line| self.greeting.polls || !line.is_closed())
    }

    /// True for a new session of the connected process, and for any process after a disconnection.
    pub(super) fn gives_way_to(&self, boot: &str) -> bool {
        !self.is_live() || self.greeting.boot == boot
    }

    /// Renews the lease, and returns the lease.
    pub(super) fn hear(&mut self, role: Option<Role>) -> Duration {
        self.heard = Instant::now();
        self.greeting.role = role.unwrap_or(self.greeting.role);
        self.greeting.lease
    }

    /// False if the message was not sent: the workload is disconnected, or does not read.
    pub(super) fn tell(&mut self, told: ToWorkload) -> bool {
        let is_told = self.line.as_ref().is_some_and(|line| line.try_send(told).is_ok());
        if !is_told {
            self.line = None;
        }
        is_told
    }

    pub(super) fn close_stream(&mut self) {
        self.line = None;
    }

    pub(super) fn say_goodbye(&mut self) {
        self.has_said_goodbye = true;
        self.close_stream();
    }

    pub(super) fn end(&mut self, why: &str) {
        self.tell(ToWorkload::GoAway(why.to_owned()));
        self.close_stream();
    }

    /// The next time at which the lease or the registration expires without a message.
    pub(super) fn next_due(&self) -> Option<Instant> {
        match self.lapsed {
            None => Some(self.heard + self.greeting.lease),
            Some(since) if !self.is_due_to_go => self.greeting.retain.map(|retain| since + retain),
            Some(_) => None,
        }
    }

    /// Why the session is over, when the lease has just expired.
    pub(super) fn expire_lease(&mut self, now: Instant) -> Option<&'static str> {
        if self.lapsed.is_some() || now < self.heard + self.greeting.lease {
            return None;
        }
        self.end("this workload sent nothing within its lease");
        self.lapsed = Some(now);
        self.greeting.known.clear();
        Some(if self.has_said_goodbye {
            "the workload left while the hook ran, and did not connect again within its lease"
        } else {
            "the workload sent nothing within its lease"
        })
    }

    /// True when the registration has expired; returned once.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if self.is_due_to_go || self.lapsed.is_none() || self.next_due().is_none_or(|due| now < due) {
            return false;
        }
        self.is_due_to_go = true;
        true
    }

    /// The state of an attempt as reported by the workload.
    pub(super) fn take_claim(&mut self, attempt: &str) -> Option<AttemptState> {
        self.stopped.remove(attempt);
        self.greeting.known.remove(attempt).map(|ended| ended.map_or(AttemptState::Running, AttemptState::Ended))
    }

    /// The reported attempts with their outcomes; `None` for a running attempt.
    pub(super) fn claims(&self) -> &BTreeMap<String, Option<HookOutcome>> {
        &self.greeting.known
    }

    /// Records the workload's report of an attempt that this replica has not adopted.
    pub(super) fn claim(&mut self, attempt: &str, ended: Option<HookOutcome>) {
        let known = &mut self.greeting.known;
        if known.len() < MAX_KNOWN || known.contains_key(attempt) {
            let known = known.entry(attempt.to_owned()).or_default();
            *known = ended.or(known.take());
        }
    }

    /// Dismisses a reported attempt without use: a running attempt is cancelled, once, and an ended attempt is
    /// acknowledged.
    pub(super) fn dismiss_claim(&mut self, key: &str, reason: &str) {
        let attempt = key.to_owned();
        match self.greeting.known.get(key) {
            Some(Some(_)) => {
                self.take_claim(key);
                self.tell(ToWorkload::Acknowledged(attempt));
            }
            Some(None) if self.stopped.insert(attempt.clone()) => {
                self.tell(ToWorkload::Cancel { attempt, reason: reason.to_owned() });
            }
            Some(None) | None => {}
        }
    }

    fn has_dialled(&self) -> bool {
        !self.token.is_empty()
    }

    /// True if the session may be removed after its removal from the log.
    pub(super) fn may_go(&self) -> bool {
        self.is_due_to_go || !self.has_dialled()
    }

    pub(super) fn presence(&self) -> SessionRegistration {
        SessionRegistration {
            workload: self.greeting.workload.clone(),
            role: self.greeting.role,
            connected: self.is_connected(),
            has_dialled: self.has_dialled(),
            is_due_to_go: self.is_due_to_go,
        }
    }
}
