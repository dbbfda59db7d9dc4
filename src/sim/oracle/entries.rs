//! Checks at the commit of an entry: the state, the transition, and whether the entry is true.

use std::time::Duration;

use crate::node_state::Node;
use crate::oracle::ClaimMade;
use crate::scenario::TriggerPoint;
use crate::verdict::Property;
use crate::world::World;
use allclear_core::model::attempt::Outcome;
use allclear_core::model::claim::Reason;
use allclear_core::model::command::{ClaimApproval, Command, Entry, FinishAttempt, RecordPost, ReportDocument};
use allclear_core::model::document::{Announcement, Document, Source, Status};
use allclear_core::model::id::{AttemptId, EventId, VmName};
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::verify::invariants;
use allclear_core::verify::transition;

/// In milliseconds.
const RIGHT_WITHIN: i64 = 1_000;
/// The tolerance with slow messages, in milliseconds.
const LATE_WITHIN: i64 = 60_000;
/// A process with this run time has heard a leader.
const TOLD_WITHIN: Duration = Duration::from_secs(10);

impl World {
    /// Judges an entry that was applied.
    pub(crate) fn judge_entry(&self, vm: usize, before: &State, after: &State, entry: &Entry) {
        self.judge_time(vm, entry);
        if let Some(broken) = transition::violated(before, after).or_else(|| invariants::violated(after)) {
            let word = entry.command.as_str();
            return self
                .broke(broken.into(), format!("{broken}, after a {word} that {} appended", self.nodes[vm].name));
        }
        match &entry.command {
            Command::ClaimApproval(ClaimApproval { event, reason, .. }) => {
                self.judge_registration(vm, before, event, *reason);
                self.note_claim(after, event);
                self.come(&self.counts.claims, TriggerPoint::Claim);
            }
            Command::BeginAttempt(_) => self.come(&self.counts.begun, TriggerPoint::Begin),
            Command::RecordPost(RecordPost { attempt, .. }) => self.lapse(*attempt),
            Command::ReportDocument(ReportDocument { document, .. }) => self.judge_report(before, entry, document),
            Command::FinishAttempt(FinishAttempt { event, attempt, outcome: Outcome::Done }) => {
                let key = (event.clone(), *attempt);
                if self.judge.borrow().ended.get(&key) != Some(&Outcome::Done) {
                    let what = format!("attempt {attempt} of {event} is taken for done, and no hook has said so");
                    self.broke(Property::S1, what);
                }
            }
            _ => {}
        }
    }

    /// S13: if most clocks have been right all the time, or one clock of two whose endpoints return the time, no entry
    /// is stamped ahead of the true time.
    pub(crate) fn judge_time(&self, leader: usize, entry: &Entry) {
        let early = entry.at.0 - self.now().0;
        if self.is_time_told(leader) && early > 2 * RIGHT_WITHIN {
            self.broke(Property::S13, format!("{} stamps an entry {early} ms early", self.nodes[leader].name));
        }
    }

    /// S13, when an entry is stamped: its commit may be long after.
    pub(crate) fn judge_stamp(&self, leader: usize, at: Timestamp) {
        let late = self.now().0 - at.0;
        if self.is_time_told(leader) && late > LATE_WITHIN {
            self.broke(Property::S13, format!("{} stamps an entry {late} ms late", self.nodes[leader].name));
        }
    }

    /// Enough of the voters' clocks have been right, and polled, all the time.
    fn is_time_told(&self, leader: usize) -> bool {
        let voters = self.nodes[leader].kept.borrow().members.voters.clone();
        let began_wrong =
            |voter: usize| self.scenario.clocks.get(voter).is_some_and(|ahead| ahead.abs() > RIGHT_WITHIN);
        let wrong = self.judge.borrow().wrong_clocks.clone();
        // A stopped machine may have led without the others when the cluster was formed.
        let has_stood = |node: &Node| node.body.borrow().stood > 0 || node.is_paused();
        let is_odd = self.nodes.iter().any(has_stood);
        let can_tell = |voter: &&usize| !wrong.contains(*voter) && !began_wrong(**voter) && self.nodes[**voter].is_up();
        let right = voters.iter().filter(can_tell).count();
        // The endpoint of one VM shows which clock of two is right.
        let is_helped = voters.len() == 2 && self.scenario.are_answers_dated;
        // If too few voters could be polled, the time may be wrong from then on: cluster time never goes back.
        if right * 2 <= voters.len() && !(is_helped && right == 1) {
            self.judge.borrow_mut().left_alone_at = Some(self.now());
        }
        self.judge.borrow().left_alone_at.is_none() && !is_odd && voters.len() > 1
    }

    /// The process of this replica dies. If no replica is left that has had time to receive the time, the time is
    /// unknown.
    pub(crate) fn judge_loss_of_time(&self, vm: usize) {
        let knows = |other: usize| other != vm && self.nodes[other].awake_for(self.now()) > TOLD_WITHIN;
        if !(0..self.nodes.len()).any(|other| self.nodes[other].is_up() && knows(other)) {
            self.judge.borrow_mut().left_alone_at = Some(self.now());
        }
    }

    /// S1: the workloads on the VM of a member are known before an event counts as prepared.
    fn judge_registration(&self, leader: usize, before: &State, id: &EventId, reason: Reason) {
        let rests_on_hooks = matches!(reason, Reason::Prepared | Reason::NothingToPrepare);
        let Some(event) = before.open_event(id).filter(|event| rests_on_hooks && event.claims.is_empty()) else {
            return;
        };
        if event.announcement.source == Source::User || event.budget_ends().is_some() {
            return;
        }
        let members = self.nodes[leader].kept.borrow().members.clone();
        let is_member = |vm: &VmName| members.all().any(|member| self.nodes[member].name == *vm);
        let mut named = event.announcement.resources.iter();
        if let Some(vm) = named.find(|vm| is_member(vm) && !before.replicas.contains_key(*vm)) {
            self.broke(Property::S1, format!("{id} is claimed, and {vm} has yet to say what runs there"));
        }
    }

    fn note_claim(&self, after: &State, event: &EventId) {
        let Some(event) = after.open_event(event) else { return };
        let mut claims = event.claims.iter().rev();
        let Some(claim) = claims.next() else { return };
        let (id, approver) = (event.announcement.id.clone(), claim.approver.clone());
        let decided = event.announcement.resources.clone();
        let made = ClaimMade { event: id, approver, at: self.now(), decided, lapsed: None };
        self.judge.borrow_mut().claims.insert(claim.attempt, made);
        if let Some(before) = claims.next() {
            self.lapse(before.attempt);
        }
    }

    fn lapse(&self, claim: AttemptId) {
        let stood = self.nodes.iter().map(|node| node.body.borrow().stood).collect();
        let now = self.now();
        if let Some(made) = self.judge.borrow_mut().claims.get_mut(&claim) {
            made.lapsed.get_or_insert((now, stood));
        }
    }

    /// S6: a replica that reports the end of an event has received two consecutive documents without the event, or more
    /// if the replica had listed the event as started. A replica counts from the time of its request, and may be kept
    /// from counting documents for an approval.
    fn judge_report(&self, before: &State, entry: &Entry, document: &Document) {
        let Some(vm) = self.vm(&entry.by) else { return };
        let known = before.replicas.get(&entry.by).and_then(|replica| replica.document.as_ref());
        let listed = known.into_iter().flat_map(|known| &known.events);
        let endpoints = self.endpoints.borrow();
        let was_told = |event: &Announcement| {
            let (documents, span) = if event.status == Status::Started { (5, 10) } else { (2, 0) };
            endpoints[vm].has_said_gone(&event.id, documents, Duration::from_secs(span).mul_f32(0.98))
        };
        // The simulated platform never undoes a start, and an old document is never served twice in a row.
        let is_taken_back = |event: &&Announcement| {
            let now = document.get(&event.id).map(|now| &now.status);
            event.status == Status::Started && now.is_some_and(|now| *now != Status::Started)
        };
        if let Some(event) = listed.clone().find(is_taken_back) {
            self.broke(Property::S6, format!("{} says that {} has not started", entry.by, event.id));
        }
        let guessed = listed.filter(|event| document.get(&event.id).is_none()).find(|event| !was_told(event));
        if let Some(event) = guessed {
            let what =
                format!("{} says that {} is gone, and was not told so often enough in a row", entry.by, event.id);
            self.broke(Property::S6, what);
        }
    }
}
