//! The next entry: mostly commands that fit the state, so that a sequence makes progress, and often misfits.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use allclear::core::assignments::{Assignment, assignments};
use allclear::core::model::attempt::{Outcome, Progress};
use allclear::core::model::claim::PostOutcome;
use allclear::core::model::command::{
    Command, Entry, ExtendAttempt, FinishAttempt, RecordPost, ReportDocument, ReportProgress,
};
use allclear::core::model::document::{Announcement, Document, EventType, NotBefore, Source, Status};
use allclear::core::model::id::{EventId, VmName};
use allclear::core::model::isolation::ImdsHealth;
use allclear::core::model::state::State;
use allclear::core::model::time::Timestamp;
use allclear::core::plan::plan;
use allclear::core::planning_input::{LeaderState, PeerHealth, PlanningInput, Timing};
use allclear::core::policy::{Foreign, Policy};

use super::odd;
use crate::hostile::dice::Dice;

pub(super) const VMS: [&str; 3] = ["db-0", "db-1", "db-2"];

/// The world outside of the log: the platform, the clock, and the leader.
pub(super) struct World {
    now: Timestamp,
    leader: usize,
    term: u64,
    listed: Vec<Announcement>,
    policy: Policy,
    announced: usize,
}

impl World {
    pub(super) fn new(dice: &mut Dice) -> Self {
        let foreign = if dice.once_in(2) { Foreign::ApproveUser } else { Foreign::Observe };
        let ahead = *dice.one(&[Duration::ZERO, Duration::from_mins(15), Duration::from_hours(48)]);
        let policy = Policy { foreign, prepare_ahead: ahead, ..Policy::default() };
        Self { now: Timestamp(1_000), leader: 0, term: 1, listed: Vec::new(), policy, announced: 0 }
    }

    pub(super) fn entry(&mut self, dice: &mut Dice, state: &State) -> Entry {
        self.time_passes(dice);
        self.platform_moves(dice);
        let (by, command) = match dice.below(20) {
            _ if state.replicas.len() < VMS.len() && !dice.once_in(3) => {
                (VMS[state.replicas.len() % VMS.len()], odd::register(dice))
            }
            0..=6 => self.planned(dice, state),
            7..=10 => self.reported(dice, state),
            11..=15 => answered(dice, state),
            _ => (*dice.one(&VMS), odd::command(dice, state)),
        };
        let by = if dice.once_in(20) { odd::vm(dice) } else { VmName::new(by) };
        Entry { at: self.stamp(dice), by, command }
    }

    fn time_passes(&mut self, dice: &mut Dice) {
        let millis = match dice.below(12) {
            0..=3 => 0,
            4..=8 => dice.below(2_000),
            9 => dice.below(60_000),
            10 => dice.below(900_000),
            _ => dice.below(10_000_000),
        };
        self.now = self.now.plus(Duration::from_millis(millis as u64));
    }

    /// Mostly the present; sometimes the time of a leader with a slow clock, rarely of a leader with a broken clock.
    fn stamp(&self, dice: &mut Dice) -> Timestamp {
        match dice.below(400) {
            0 => Timestamp(dice.number().cast_signed()),
            1..=20 => self.now.minus(Duration::from_millis(dice.next() % 100_000)),
            _ => self.now,
        }
    }

    fn platform_moves(&mut self, dice: &mut Dice) {
        match dice.below(24) {
            0 | 1 if self.listed.len() < 3 => {
                self.announced += 1;
                let id =
                    EventId::new(if dice.once_in(6) { "e1".into() } else { format!("e{}", self.announced) }.as_str());
                if self.listed.iter().all(|listed| listed.id != id) {
                    let announcement = self.announcement(dice, id);
                    self.listed.push(announcement);
                }
            }
            2 if !self.listed.is_empty() => {
                let at = dice.below(self.listed.len());
                self.listed[at].status = Status::Started;
                self.listed[at].not_before = NotBefore::Unknown;
            }
            3 if !self.listed.is_empty() => drop(self.listed.remove(dice.below(self.listed.len()))),
            4 => {
                self.leader = dice.below(VMS.len());
                self.term += 1;
            }
            _ => {}
        }
    }

    fn announcement(&self, dice: &mut Dice, id: EventId) -> Announcement {
        let kind = dice
            .one(&[EventType::Freeze, EventType::Reboot, EventType::Redeploy, EventType::Preempt, EventType::Terminate])
            .clone();
        let at = self.now.plus(Duration::from_millis(dice.next() % 1_800_000));
        Announcement {
            id,
            status: Status::Scheduled,
            kind,
            source: dice.one(&[Source::Platform, Source::User]).clone(),
            resource_type: String::new(),
            resources: (0..=dice.below(2)).map(|_| a_vm(dice)).collect(),
            not_before: if dice.once_in(5) { NotBefore::Unknown } else { NotBefore::At(at) },
            description: String::new(),
            duration: (!dice.once_in(2)).then(|| Duration::from_secs(dice.next() % 30)),
        }
    }

    fn planning_input(&self, dice: &mut Dice) -> PlanningInput {
        let now = self.now;
        let since = now.minus(Duration::from_millis(dice.next() % 600_000));
        let is_blind = dice.once_in(8);
        let contact = |dice: &mut Dice| PeerHealth {
            reachable: is_blind || !dice.once_in(8),
            since,
            imds: if is_blind || dice.once_in(8) { ImdsHealth::Stalled } else { ImdsHealth::Healthy },
            imds_since: since,
            document_age: (!dice.once_in(8)).then_some(Duration::ZERO),
            answers_in: Duration::ZERO,
            operator_seq: u64::MAX,
            can_acknowledge: true,
        };
        let contacts: BTreeMap<VmName, PeerHealth> = VMS.iter().map(|vm| (VmName::new(vm), contact(dice))).collect();
        let mut members: Vec<VmName> = VMS.iter().map(|vm| VmName::new(vm)).collect();
        if dice.once_in(20) {
            members.pop();
        }
        let acknowledged = members.iter().map(|vm| (vm.clone(), if dice.once_in(10) { since } else { now })).collect();
        let lead = LeaderState { term: self.term, turn: 1, voters: members.clone(), acknowledged };
        PlanningInput {
            now,
            me: VmName::new(VMS[self.leader]),
            members,
            learners: BTreeSet::new(),
            versions: BTreeMap::new(),
            peers: contacts,
            quorum: !dice.once_in(20),
            leading_since: since,
            leader: Some(lead),
            isolated: None,
            policy: self.policy.clone(),
            timing: Timing::default(),
        }
    }

    fn planned(&self, dice: &mut Dice, state: &State) -> (&'static str, Command) {
        let due = plan(state, &self.planning_input(dice));
        let command = if due.is_empty() { odd::command(dice, state) } else { dice.one(&due).clone() };
        (VMS[self.leader], command)
    }

    fn reported(&self, dice: &mut Dice, state: &State) -> (&'static str, Command) {
        let vm = *dice.one(&VMS);
        let known = state.replicas.get(&VmName::new(vm)).map_or(0, |replica| replica.reports);
        let after = if dice.once_in(10) { dice.number() } else { known };
        let mut events = self.listed.clone();
        if dice.once_in(12) {
            events.push(odd::announcement(dice, state));
        }
        (vm, Command::ReportDocument(ReportDocument { after, document: Document::new(events) }))
    }
}

pub(super) fn a_vm(dice: &mut Dice) -> VmName {
    VmName::new(VMS[dice.below(VMS.len())])
}

/// A replica's report on its assignments.
fn answered(dice: &mut Dice, state: &State) -> (&'static str, Command) {
    let vm = *dice.one(&VMS);
    let me = VmName::new(vm);
    let errands = assignments(state, &me);
    if errands.is_empty() {
        return (vm, odd::command(dice, state));
    }
    let command = match dice.one(&errands) {
        Assignment::Run { event, attempt, .. } | Assignment::Cancel { event, attempt } => {
            let (event, attempt, deadline) = (event.announcement.id.clone(), attempt.id, attempt.deadline);
            match dice.below(8) {
                0 => Command::ReportProgress(ReportProgress {
                    event,
                    attempt,
                    progress: Progress { text: "on it".into(), expected_end: Some(deadline) },
                }),
                1 => Command::ExtendAttempt(ExtendAttempt {
                    event,
                    attempt,
                    deadline: deadline.plus(Duration::from_secs(30)),
                }),
                _ => Command::FinishAttempt(FinishAttempt { event, attempt, outcome: outcome(dice) }),
            }
        }
        Assignment::Post { event, claim } => Command::RecordPost(RecordPost {
            event: event.announcement.id.clone(),
            attempt: claim.attempt,
            outcome: posted(dice),
        }),
    };
    (vm, command)
}

pub(super) fn outcome(dice: &mut Dice) -> Outcome {
    match dice.below(12) {
        0 => Outcome::NotApplicable,
        1 => Outcome::NotDone,
        2 => Outcome::Failed("exit status 3".into()),
        3 => Outcome::Blocked("no standby".into()),
        4 => Outcome::TimedOut("after 60 s".into()),
        5 => Outcome::Cancelled,
        6 => Outcome::Unknown("lost".into()),
        _ => Outcome::Done,
    }
}

pub(super) fn posted(dice: &mut Dice) -> PostOutcome {
    match dice.below(8) {
        0 => PostOutcome::Refused(500),
        1 => PostOutcome::NotSent("refused".into()),
        2 => PostOutcome::Unknown("no reply".into()),
        3 => PostOutcome::Withdrawn,
        _ => PostOutcome::Accepted,
    }
}
