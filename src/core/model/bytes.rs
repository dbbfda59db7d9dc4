//! Bounds of the state in bytes, and the size of each value.
//!
//! Counts alone bound too little: 1,000 closed events may be 1,000 times a document. The size is an estimate of memory:
//! the length of each text, and a fixed number for each value. The estimate is no less than the size in the log or in a
//! snapshot.

use crate::model::attempt::{Attempt, WaiverReason};
use crate::model::claim::PostOutcome;
use crate::model::document::{Announcement, Document, EventType, Source, Status};
use crate::model::event::Event;
use crate::model::id::VmName;
use crate::model::isolated_approval::IsolatedApproval;
use crate::model::operator::{OperatorAction, OperatorRecord};
use crate::model::state::State;
use alloc::vec::Vec;

/// An endpoint that alternates between started and still to come, or gone, for one event adds two stages each time.
const STAGES_LIMIT: usize = 200;

/// Any event may come back a few times, independent of the size of the record.
const FEW_STAGES: usize = 20;

impl Event {
    /// The event has come and gone seldom enough to bound its record. Otherwise a start is no longer reverted, and the
    /// event becomes a new event when listed again after the end.
    pub fn may_return(&self) -> bool {
        // With many members the record is long at once.
        let is_short = || self.entered.len() < FEW_STAGES || self.record_bytes() < RECORD_BYTES;
        self.entered.len() < STAGES_LIMIT && is_short()
    }
}

/// One announced event. A placement group holds up to 100 VMs, whose names take a fifth of this size.
pub const ANNOUNCEMENT_BYTES: usize = 64 << 10;

/// The reported document of one replica. A quarter of this size is kept free of events without a VM of this cluster.
pub const DOCUMENT_BYTES: usize = 256 << 10;

/// The documents of all replicas together: with many replicas, each replica may report less.
pub const DOCUMENTS_BYTES: usize = 16 << 20;

/// The history. Events without concern for this cluster are removed first, then the oldest events.
pub const HISTORY_BYTES: usize = 8 << 20;

/// The record of one event: an event with a larger record comes back under its id a few times, and then begins anew.
pub const RECORD_BYTES: usize = 64 << 10;

/// The operator requests about one event, and the requests about no single event.
pub const WISHES_BYTES: usize = 32 << 10;

/// The overhead of a list and of the allocator for a text, a name, and each other counted value.
const TEXT: usize = 24;

const NAME: usize = 48;

const ANNOUNCEMENT: usize = 256;

const EVENT: usize = 640;

const ATTEMPT: usize = 384;

const CLAIM: usize = 192;

const OTHER: usize = 96;

fn text(text: &str) -> usize {
    TEXT + text.len()
}

fn name(name: &VmName) -> usize {
    NAME + name.as_str().len()
}

impl Announcement {
    pub fn bytes(&self) -> usize {
        let word = |word: &str| if word.is_empty() { 0 } else { text(word) };
        let status = if let Status::Other(word) = &self.status { word } else { "" };
        let kind = if let EventType::Other(word) = &self.kind { word } else { "" };
        let source = if let Source::Other(word) = &self.source { word } else { "" };
        let words: usize = [status, kind, source, &self.resource_type, &self.description].into_iter().map(word).sum();
        let id = TEXT + 2 * self.id.as_received().len();
        ANNOUNCEMENT + id + words + self.resources.iter().map(name).sum::<usize>()
    }

    /// The announcement names a VM with a registered replica of this cluster.
    pub fn concerns(&self, state: &State) -> bool {
        self.resources.iter().any(|vm| state.replicas.contains_key(vm))
    }
}

impl Document {
    pub fn bytes(&self) -> usize {
        self.events.iter().map(Announcement::bytes).sum()
    }
}

impl Event {
    pub fn bytes(&self) -> usize {
        let names = self.seen_by.iter().chain(&self.departed).chain(self.impacts.keys()).map(name).sum::<usize>();
        self.announcement.bytes() + names + self.record_bytes()
    }

    /// The size of the event's record, without the announcement.
    pub fn record_bytes(&self) -> usize {
        let outcome = |outcome: &PostOutcome| match outcome {
            PostOutcome::NotSent(why) | PostOutcome::Unknown(why) => text(why),
            PostOutcome::Accepted | PostOutcome::Refused(_) | PostOutcome::Withdrawn | PostOutcome::Differs => 0,
        };
        let claims = self.claims.iter().map(|claim| {
            CLAIM + claim.stints.len() * OTHER + claim.outcome.as_ref().map_or(0, |(posted, _)| outcome(posted))
        });
        let takeovers = self.isolated_approvals.iter().map(|takeover: &IsolatedApproval| {
            let asked = takeover.requested_by.as_ref().map_or(0, |by| text(&by.who) + text(&by.reason));
            let posted = takeover.outcome.as_ref().map_or(0, |(posted, _)| outcome(posted));
            CLAIM + takeover.out_of_reach.len() * OTHER + asked + posted
        });
        let waivers = self.waivers.iter().map(|waiver| match &waiver.why {
            WaiverReason::Unreachable => OTHER,
            WaiverReason::Skipped { who, reason } => OTHER + text(who) + text(reason),
        });
        let wishes = self.operator_records.iter().map(OperatorRecord::bytes);
        let times = (self.entered.len() + self.former_calls.len() + self.gave_back.len()) * 16;
        let attempts = self.attempts.iter().map(Attempt::bytes);
        EVENT + times + attempts.chain(claims).chain(takeovers).chain(waivers).chain(wishes).sum::<usize>()
    }

    /// The event concerned a member of this cluster, or a replica or operator of this cluster acted on the event.
    pub fn is_of_concern(&self, state: &State) -> bool {
        let is_touched = !self.attempts.is_empty() || !self.claims.is_empty() || !self.isolated_approvals.is_empty();
        is_touched || !self.operator_records.is_empty() || self.announcement.concerns(state)
    }
}

impl Attempt {
    pub(crate) fn bytes(&self) -> usize {
        let said = [&self.outcome, &self.late].into_iter().flatten().filter_map(|(outcome, _)| outcome.reason());
        let progress = self.progress.iter().map(|progress| progress.text.as_str());
        ATTEMPT + said.chain(progress).map(text).sum::<usize>()
    }
}

impl OperatorRecord {
    pub(crate) fn bytes(&self) -> usize {
        let what = if let OperatorAction::ClusterChange(what) = &self.what { text(what) } else { 0 };
        OTHER + text(&self.who) + text(&self.reason) + what
    }
}

impl State {
    /// The report size allowed for one replica: all reports together stay within a bound, independent of the number of
    /// replicas.
    pub fn room_for_document(&self) -> usize {
        DOCUMENT_BYTES.min(DOCUMENTS_BYTES / self.replicas.len().max(1))
    }

    /// An entry with a larger document is rejected. A report may be twice as large for a few polls, when a previous run
    /// reported other events.
    pub fn takes(&self, document: &Document) -> bool {
        let is_fit = |announcement: &Announcement| announcement.bytes() <= ANNOUNCEMENT_BYTES;
        document.bytes() <= 2 * self.room_for_document() && document.events.iter().all(is_fit)
    }

    /// As many VMs of the announcement as fit, the VMs of this cluster first. Omitted VMs are not of this cluster.
    pub(crate) fn fitted(&self, shown: Announcement) -> Announcement {
        let bytes = shown.bytes();
        if bytes <= ANNOUNCEMENT_BYTES {
            return shown;
        }
        let is_ours = |vm: &&VmName| self.replicas.contains_key(*vm);
        let all = shown.resources.iter().map(name).sum::<usize>();
        let mut left = ANNOUNCEMENT_BYTES.saturating_sub(bytes - all);
        let ours = shown.resources.iter().filter(is_ours);
        let others = shown.resources.iter().filter(|vm| !is_ours(vm));
        let fits = |vm: &&VmName| {
            let fits = name(vm) <= left;
            left -= if fits { name(vm) } else { 0 };
            fits
        };
        let resources: Vec<VmName> = ours.chain(others).filter(fits).cloned().collect();
        Announcement { resources, ..shown }
    }
}
