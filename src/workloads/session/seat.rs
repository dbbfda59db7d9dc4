//! One workload that dialled in: its line, its lease, and the attempts that it says it knows.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Greeting, MAX_KNOWN, Presence, Told};
use crate::machine::workload::{Condition, Role, Workload};
use crate::workloads::{Ended, Standing};

/// How long a workload that an earlier life of the replica knew may take to dial in again.
const EXPECTED_WITHIN: Duration = Duration::from_secs(30);

pub(super) struct Seat {
    pub(super) workload: Workload,
    pub(super) token: String,
    boot: String,
    lease: Duration,
    retain: Option<Duration>,
    pub(super) role: Role,
    heard: Instant,
    /// Since when its lease is over.
    lapsed: Option<Instant>,
    is_due_to_go: bool,
    polls: bool,
    line: Option<mpsc::Sender<Told>>,
    /// Attempts that it named and that nobody here has taken up yet.
    claims: BTreeMap<String, Claimed>,
}

#[derive(Default)]
struct Claimed {
    /// `None` while it runs.
    ended: Option<Ended>,
    is_cancelled: bool,
}

impl Seat {
    pub(super) fn new(greeting: Greeting, token: String, line: mpsc::Sender<Told>, now: Instant) -> Self {
        let claim = |(attempt, ended)| (attempt, Claimed { ended, is_cancelled: false });
        Self {
            workload: greeting.workload,
            token,
            boot: greeting.boot,
            lease: greeting.lease,
            retain: greeting.retain,
            role: greeting.role,
            heard: now,
            lapsed: None,
            is_due_to_go: false,
            polls: greeting.polls,
            line: Some(line),
            claims: greeting.known.into_iter().map(claim).collect(),
        }
    }

    /// One that is registered and has not dialled in yet since this replica began.
    pub(super) fn expected(workload: Workload, condition: Condition, now: Instant) -> Self {
        Self {
            workload,
            token: String::new(),
            boot: String::new(),
            lease: EXPECTED_WITHIN,
            retain: None,
            role: condition.role,
            heard: now,
            lapsed: (!condition.connected).then_some(now),
            is_due_to_go: false,
            polls: false,
            line: None,
            claims: BTreeMap::new(),
        }
    }

    /// Somebody is at the other end, as far as anybody can tell.
    pub(super) fn is_live(&self) -> bool {
        self.lapsed.is_none() && self.line.as_ref().is_some_and(|line| self.polls || !line.is_closed())
    }

    pub(super) fn has_lapsed(&self) -> bool {
        self.lapsed.is_some()
    }

    /// The same process may come again, and whoever follows a process that is gone.
    pub(super) fn gives_way_to(&self, boot: &str) -> bool {
        !self.is_live() || self.boot == boot
    }

    pub(super) fn hear(&mut self, now: Instant) {
        self.heard = now;
    }

    pub(super) fn lease(&self) -> Duration {
        self.lease
    }

    /// False when it could not be told: nobody is there, or it does not read.
    pub(super) fn tell(&mut self, told: Told) -> bool {
        let is_told = self.line.as_ref().is_some_and(|line| line.try_send(told).is_ok());
        if !is_told {
            self.line = None;
        }
        is_told
    }

    pub(super) fn hang_up(&mut self) {
        self.line = None;
    }

    pub(super) fn end(&mut self, why: &str) {
        self.tell(Told::GoAway(why.to_owned()));
        self.hang_up();
    }

    /// When something becomes due without anybody saying anything.
    pub(super) fn next_due(&self) -> Option<Instant> {
        match self.lapsed {
            None => Some(self.heard + self.lease),
            Some(since) if !self.is_due_to_go => self.retain.map(|retain| since + retain),
            Some(_) => None,
        }
    }

    /// True when its lease has just ended.
    pub(super) fn lapse(&mut self, now: Instant) -> bool {
        if self.lapsed.is_some() || now < self.heard + self.lease {
            return false;
        }
        self.end("nothing was heard of this workload within its lease");
        self.lapsed = Some(now);
        self.claims.clear();
        true
    }

    /// True when its registration is not to be kept any longer, which is told once.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        let is_due = |since: Instant| self.retain.is_some_and(|retain| now >= since + retain);
        if self.is_due_to_go || !self.lapsed.is_some_and(is_due) {
            return false;
        }
        self.is_due_to_go = true;
        true
    }

    /// Its registration was taken back.
    pub(super) fn let_go(&mut self) {
        self.is_due_to_go = true;
    }

    /// How it ended as it says, or that it runs.
    pub(super) fn take_claim(&mut self, attempt: &str) -> Option<Standing> {
        self.claims.remove(attempt).map(|claimed| claimed.ended.map_or(Standing::Running, Standing::Ended))
    }

    /// Each with how it ended, unless it runs.
    pub(super) fn claims(&self) -> impl Iterator<Item = (&String, &Option<Ended>)> {
        self.claims.iter().map(|(key, claimed)| (key, &claimed.ended))
    }

    /// It said something of an attempt that nobody here has taken up.
    pub(super) fn claim(&mut self, attempt: &str, ended: Option<Ended>) {
        if self.claims.len() >= MAX_KNOWN && !self.claims.contains_key(attempt) {
            return;
        }
        let claimed = self.claims.entry(attempt.to_owned()).or_default();
        claimed.ended = ended.or(claimed.ended.take());
    }

    /// Nobody waits for it: what runs is told to stop, once, and what has ended need not be told again.
    pub(super) fn dismiss_claim(&mut self, key: &str, reason: &str) {
        let Some(claimed) = self.claims.get_mut(key) else { return };
        let attempt = key.to_owned();
        if claimed.ended.is_some() {
            self.claims.remove(key);
            self.tell(Told::Acknowledged(attempt));
        } else if !core::mem::replace(&mut claimed.is_cancelled, true) {
            self.tell(Told::Cancel { attempt, reason: reason.to_owned() });
        }
    }

    pub(super) fn has_dialled(&self) -> bool {
        !self.token.is_empty()
    }

    /// Nothing speaks for keeping it once the log does not know it.
    pub(super) fn may_go(&self) -> bool {
        self.is_due_to_go || !self.has_dialled()
    }

    pub(super) fn presence(&self) -> Presence {
        Presence {
            workload: self.workload.clone(),
            role: self.role,
            connected: self.lapsed.is_none(),
            has_dialled: self.has_dialled(),
            is_due_to_go: self.is_due_to_go,
        }
    }
}
