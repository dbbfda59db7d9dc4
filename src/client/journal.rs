//! The journal of attempts: begun attempts, their outcomes, and which outcomes are acknowledged. This module does no
//! I/O; `journal_file` keeps the lines on disk.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use allclear_wire::pb::allclear::workload::v1;
use allclear_wire::pb::allclear::workload::v1::{Intent, Mode};

/// Acknowledged attempts are forgotten beyond this number, the oldest first.
const REMEMBERED: usize = 1000;
/// Maximum number of attempts that run or wait for an acknowledgement; further attempts are answered with `Blocked`,
/// to be retried later.
const OPEN: usize = 64;

/// The action of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Act {
    Run,
    Confirm,
    Undo,
    DryRun,
}

impl Act {
    /// `None` for unknown values of a newer replica.
    pub(super) fn of(step: &v1::Step) -> Option<Self> {
        match (Mode::try_from(step.mode).ok()?, Intent::try_from(step.intent).ok()?) {
            (_, Intent::Unspecified) => None,
            (Mode::DryRun, _) => Some(Self::DryRun),
            (_, Intent::Run) => Some(Self::Run),
            (_, Intent::Confirm) => Some(Self::Confirm),
            (_, Intent::Undo) => Some(Self::Undo),
        }
    }
}

/// One line of a journal's file. Other programs use the same format: see `deploy/clients/python`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum JournalLine {
    Journal { version: u32 },
    Begun { attempt: String, step: String, act: Act, event: String, vm: String, fence: (u64, u64) },
    Ended { attempt: String, outcome: String, reason: Option<String> },
    Acknowledged { attempt: String },
}

pub(super) struct AttemptRecord {
    pub(super) attempt: String,
    step: String,
    act: Act,
    /// Fences are compared among attempts for equal event and VM: in another scope, a lower fence may come later.
    scope: (String, String),
    fence: (u64, u64),
    pub(super) outcome: Option<Outcome>,
    is_acknowledged: bool,
    /// A previous run of this process had begun the attempt, and ended before the attempt.
    is_interrupted: bool,
}

impl AttemptRecord {
    const fn new(attempt: String, step: String, act: Act, scope: (String, String), fence: (u64, u64)) -> Self {
        Self { attempt, step, act, scope, fence, outcome: None, is_acknowledged: false, is_interrupted: false }
    }

    fn is_open(&self) -> bool {
        !self.is_acknowledged && !self.is_interrupted
    }

    fn begun(&self) -> JournalLine {
        let (attempt, step, (event, vm)) = (self.attempt.clone(), self.step.clone(), self.scope.clone());
        JournalLine::Begun { attempt, step, act: self.act, event, vm, fence: self.fence }
    }
}

#[derive(Default)]
pub(super) struct Journal {
    /// The attempts in the order of receipt.
    records: VecDeque<AttemptRecord>,
}

impl Journal {
    /// Records an attempt that the replica requests. True if the attempt has to begin; false for a known attempt, whose
    /// outcome is reported again, and for an attempt behind a newer one of its scope, which ends as stale. An error
    /// where the journal has no room for the attempt.
    pub(super) fn receive(&mut self, step: &v1::Step, act: Act) -> Result<bool, Outcome> {
        if let Some(known) = self.find(&step.attempt) {
            if known.is_interrupted {
                (known.outcome, known.is_interrupted) = (Some(interrupted()), false);
            }
            known.is_acknowledged = false;
            return Ok(false);
        }
        if self.known().count() >= OPEN {
            return Err(Outcome::Blocked(format!("{OPEN} attempts are open at this workload")));
        }
        let fence = step.fence.unwrap_or_default();
        let fence = (fence.term, fence.sequence);
        let scope = (step.event.as_ref().map_or(String::new(), |event| event.id.clone()), step.vm.clone());
        let is_stale = self.records.iter().any(|record| record.scope == scope && record.fence > fence);
        self.begin(AttemptRecord::new(step.attempt.clone(), step.step.clone(), act, scope, fence));
        if is_stale {
            self.end(&step.attempt, Outcome::Stale);
        }
        Ok(!is_stale)
    }

    fn begin(&mut self, record: AttemptRecord) {
        if self.records.len() >= REMEMBERED {
            let oldest = self.records.iter().position(|record| !record.is_open());
            oldest.and_then(|at| self.records.remove(at));
        }
        self.records.push_back(record);
    }

    pub(super) fn end(&mut self, attempt: &str, outcome: Outcome) {
        if let Some(record) = self.find(attempt) {
            record.outcome = Some(outcome);
        }
    }

    /// Records an acknowledgement; returns whether the journal changed.
    pub(super) fn acknowledge(&mut self, attempt: &str) -> bool {
        let ended = self.find(attempt).filter(|record| record.outcome.is_some() && !record.is_acknowledged);
        ended.map(|record| record.is_acknowledged = true).is_some()
    }

    /// Whether every earlier attempt at the step has ended.
    pub(super) fn is_turn_of(&self, attempt: &str) -> bool {
        let Some(at) = self.records.iter().position(|record| record.attempt == attempt) else { return true };
        let mut earlier = self.records.range(..at).filter(|record| record.step == self.records[at].step);
        earlier.all(|record| record.outcome.is_some() || record.is_interrupted)
    }

    /// The state of the step before this attempt: done or not, or unknown where an effect may be partial. `None`
    /// where the step was never begun.
    pub(super) fn last_outcome(&self, step: &str, attempt: &str) -> Option<Outcome> {
        let mut last_outcome = None;
        let earlier = self.records.iter().take_while(|record| record.attempt != attempt);
        for record in earlier.filter(|record| record.step == step) {
            match (record.act, &record.outcome) {
                (Act::Run | Act::Confirm, Some(Outcome::Done)) => last_outcome = Some(Outcome::Done),
                // an effect that was undone, or found missing by confirm, is not done any more
                (Act::Undo, Some(Outcome::Done)) | (Act::Confirm, Some(Outcome::NotDone)) => {
                    last_outcome = Some(Outcome::NotDone);
                }
                // nothing was changed
                (Act::DryRun | Act::Confirm, _)
                | (_, Some(Outcome::Blocked(_) | Outcome::NotApplicable | Outcome::Stale)) => {}
                (Act::Run | Act::Undo, None) => last_outcome = Some(interrupted()),
                (Act::Run | Act::Undo, Some(other)) => last_outcome = Some(other.clone()),
            }
        }
        last_outcome
    }

    /// The attempts in the first message of a session: running attempts, and outcomes without an acknowledgement.
    pub(super) fn known(&self) -> impl Iterator<Item = &AttemptRecord> {
        self.records.iter().filter(|record| record.is_open())
    }

    /// Everything, as the file of a journal begins.
    pub(super) fn lines(&self) -> Vec<JournalLine> {
        let mut lines = vec![JournalLine::Journal { version: 1 }];
        for record in &self.records {
            lines.push(record.begun());
            lines.extend(record.outcome.as_ref().map(|outcome| ended(&record.attempt, outcome)));
            lines.extend(record.is_acknowledged.then(|| JournalLine::Acknowledged { attempt: record.attempt.clone() }));
        }
        lines
    }

    /// The journal of a previous run.
    pub(super) fn read(lines: impl IntoIterator<Item = JournalLine>) -> Result<Self, String> {
        let mut journal = Self::default();
        for line in lines {
            match line {
                JournalLine::Journal { version: 1 } => {}
                JournalLine::Journal { version } => {
                    return Err(format!("it has version {version}, this program knows 1"));
                }
                JournalLine::Begun { attempt, step, act, event, vm, fence } => {
                    journal.begin(AttemptRecord::new(attempt, step, act, (event, vm), fence));
                }
                JournalLine::Ended { attempt, outcome, reason } => {
                    let known = Outcome::from_words(&outcome, reason);
                    journal.end(&attempt, known.ok_or_else(|| format!("{outcome:?} is no outcome"))?);
                }
                JournalLine::Acknowledged { attempt } => {
                    journal.acknowledge(&attempt);
                }
            }
        }
        for record in &mut journal.records {
            record.is_interrupted = record.outcome.is_none();
        }
        Ok(journal)
    }

    pub(super) fn begun(&self, attempt: &str) -> Option<JournalLine> {
        self.records.iter().find(|record| record.attempt == attempt).map(AttemptRecord::begun)
    }

    fn find(&mut self, attempt: &str) -> Option<&mut AttemptRecord> {
        self.records.iter_mut().find(|record| record.attempt == attempt)
    }
}

fn interrupted() -> Outcome {
    Outcome::Unknown("the workload was restarted while it ran".into())
}

pub(super) fn ended(attempt: &str, outcome: &Outcome) -> JournalLine {
    let (word, reason) = outcome.in_words();
    JournalLine::Ended { attempt: attempt.to_owned(), outcome: word.to_owned(), reason: reason.map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(number: usize) -> v1::Step {
        v1::Step { attempt: format!("a{number}"), step: format!("s{number}"), ..v1::Step::default() }
    }

    #[test]
    fn no_more_are_open_than_there_is_room_for() {
        let mut journal = Journal::default();
        for number in 0..OPEN {
            assert_eq!(journal.receive(&step(number), Act::Run), Ok(true));
        }
        assert!(matches!(journal.receive(&step(OPEN), Act::Run), Err(Outcome::Blocked(_))));
        assert_eq!(journal.receive(&step(0), Act::Run), Ok(false));
        journal.end("a0", Outcome::Done);
        assert!(journal.acknowledge("a0") && !journal.acknowledge("a0"));
        assert_eq!(journal.receive(&step(OPEN), Act::Run), Ok(true));
    }

    #[test]
    fn only_what_is_acknowledged_is_forgotten() {
        let mut journal = Journal::default();
        journal.receive(&step(0), Act::Run).unwrap();
        journal.end("a0", Outcome::Done);
        for number in 1..REMEMBERED + 10 {
            assert_eq!(journal.receive(&step(number), Act::Run), Ok(true));
            journal.end(&format!("a{number}"), Outcome::Done);
            journal.acknowledge(&format!("a{number}"));
        }
        assert_eq!(journal.records.len(), REMEMBERED);
        let known: Vec<_> = journal.known().map(|record| record.attempt.as_str()).collect();
        assert_eq!(known, ["a0"]);
        assert_eq!(Journal::read(journal.lines()).unwrap().lines(), journal.lines());
    }
}
