//! One session workload: its outbox, its lease, and the attempts that it reported.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Hello, MAX_KNOWN, SessionRegistration, ToWorkload};
use crate::hooks::{AttemptState, HookOutcome};
use allclear_core::model::workload::{Condition, Role, Workload};

/// How long a workload that an earlier life of the replica knew may take to dial in again.
const EXPECTED_WITHIN: Duration = Duration::from_secs(30);

pub(super) struct Session {
    /// As it stands now. Of the attempts that it named, those are left that nobody here has taken up yet.
    pub(super) greeting: Hello,
    pub(super) token: String,
    heard: Instant,
    /// Since when its lease is over.
    pub(super) lapsed: Option<Instant>,
    /// Its registration is to be taken back.
    pub(super) is_due_to_go: bool,
    line: Option<mpsc::Sender<ToWorkload>>,
    /// Attempts that nobody here has taken up, and that it was told to stop.
    stopped: BTreeSet<String>,
}

impl Session {
    pub(super) fn new(greeting: Hello, token: String, line: mpsc::Sender<ToWorkload>, now: Instant) -> Self {
        let line = Some(line);
        Self { greeting, token, heard: now, lapsed: None, is_due_to_go: false, line, stopped: BTreeSet::new() }
    }

    /// One that is registered and has not dialled in yet since this replica began.
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
        Self { greeting, token, heard: now, lapsed, is_due_to_go: false, line: None, stopped }
    }

    /// Somebody is at the other end, as far as anybody can tell.
    pub(super) fn is_live(&self) -> bool {
        self.lapsed.is_none() && self.line.as_ref().is_some_and(|line| self.greeting.polls || !line.is_closed())
    }

    /// The same process may come again, and whoever follows a process that is gone.
    pub(super) fn gives_way_to(&self, boot: &str) -> bool {
        !self.is_live() || self.greeting.boot == boot
    }

    /// Keeps the lease, which is returned.
    pub(super) fn hear(&mut self, role: Option<Role>) -> Duration {
        self.heard = Instant::now();
        self.greeting.role = role.unwrap_or(self.greeting.role);
        self.greeting.lease
    }

    /// False when it could not be told: nobody is there, or it does not read.
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

    pub(super) fn end(&mut self, why: &str) {
        self.tell(ToWorkload::GoAway(why.to_owned()));
        self.close_stream();
    }

    /// When something becomes due without anybody saying anything.
    pub(super) fn next_due(&self) -> Option<Instant> {
        match self.lapsed {
            None => Some(self.heard + self.greeting.lease),
            Some(since) if !self.is_due_to_go => self.greeting.retain.map(|retain| since + retain),
            Some(_) => None,
        }
    }

    /// True when its lease has just ended.
    pub(super) fn expire_lease(&mut self, now: Instant) -> bool {
        if self.lapsed.is_some() || now < self.heard + self.greeting.lease {
            return false;
        }
        self.end("nothing was heard of this workload within its lease");
        self.lapsed = Some(now);
        self.greeting.known.clear();
        true
    }

    /// True when its registration is not to be kept any longer, which is told once.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if self.is_due_to_go || self.lapsed.is_none() || self.next_due().is_none_or(|due| now < due) {
            return false;
        }
        self.is_due_to_go = true;
        true
    }

    /// How it ended as it says, or that it runs.
    pub(super) fn take_claim(&mut self, attempt: &str) -> Option<AttemptState> {
        self.stopped.remove(attempt);
        self.greeting.known.remove(attempt).map(|ended| ended.map_or(AttemptState::Running, AttemptState::Ended))
    }

    /// Each with how it ended, unless it runs.
    pub(super) fn claims(&self) -> &BTreeMap<String, Option<HookOutcome>> {
        &self.greeting.known
    }

    /// It said something of an attempt that nobody here has taken up.
    pub(super) fn claim(&mut self, attempt: &str, ended: Option<HookOutcome>) {
        let known = &mut self.greeting.known;
        if known.len() < MAX_KNOWN || known.contains_key(attempt) {
            let known = known.entry(attempt.to_owned()).or_default();
            *known = ended.or(known.take());
        }
    }

    /// Nobody waits for it: what runs is told to stop, once, and what has ended need not be told again.
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

    /// Nothing speaks for keeping it once the log does not know it.
    pub(super) fn may_go(&self) -> bool {
        self.is_due_to_go || !self.has_dialled()
    }

    pub(super) fn presence(&self) -> SessionRegistration {
        SessionRegistration {
            workload: self.greeting.workload.clone(),
            role: self.greeting.role,
            connected: self.lapsed.is_none(),
            has_dialled: self.has_dialled(),
            is_due_to_go: self.is_due_to_go,
        }
    }
}
