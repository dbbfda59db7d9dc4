//! One event as the cluster knows it: announcement, treatment, attempts, claims and stages, with their times.

use crate::model::attempt::{Attempt, Waiver};
use crate::model::claim::{Claim, PostOutcome};
use crate::model::document::{Announcement, EventType, NotBefore, Source, Status};
use crate::model::drill::{Drill, Mode};
use crate::model::id::VmName;
use crate::model::isolated_approval::IsolatedApproval;
use crate::model::lifecycle::Stage;
use crate::model::operator::OperatorRecord;
use crate::model::time::Timestamp;
use crate::model::treatment::Treatment;
use alloc::collections::BTreeMap;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Event {
    /// The announcement by all current documents together, as last seen.
    pub announcement: Announcement,
    /// The revision that an approval would be for: the revision of the last change of the VMs, the type or the source,
    /// or of the last time the event was listed as still to come.
    pub decided_at_revision: u64,
    /// Every replica whose document ever listed the event.
    pub seen_by: BTreeSet<VmName>,
    /// The entered stages and their times, oldest first; the last is the current stage. See `stage_history`.
    pub entered: Vec<(Stage, Timestamp)>,
    /// Counts every change, so that an operator can name the version they have seen.
    pub revision: u64,
    pub treatment: Option<Treatment>,
    /// In the order of the commits.
    pub attempts: Vec<Attempt>,
    pub waivers: Vec<Waiver>,
    /// In the order of the commits; the last claim is in force.
    pub claims: Vec<Claim>,
    /// Approvals by replicas without a quorum, in the order in which the log received them.
    pub isolated_approvals: Vec<IsolatedApproval>,
    pub ending: Option<Ending>,
    /// VMs that the event deleted and whose replicas are removed: a new VM of such a name is no resource of the event.
    pub departed: BTreeSet<VmName>,
    /// Set for a drill: hooks run as for a real event, and the drill is never claimed, posted or taken for an event of
    /// the platform.
    pub drill: Option<Drill>,
    /// Operator requests about the event, oldest first; skipped hooks are waivers.
    pub operator_records: Vec<OperatorRecord>,
    /// When policy chose the treatment.
    pub treated: Option<Timestamp>,
    /// The time for which the event kept a VM from running, as observed by the VM's own replica.
    pub impacts: BTreeMap<VmName, Duration>,
    /// Time since which the event has a slot of every member of the event; `None` while a slot is missing.
    pub slots_since: Option<Timestamp>,
    /// Time since which the event keeps members out without progress.
    pub stuck_since: Option<Timestamp>,
    /// How often the event has released slots automatically.
    pub times_given_back: u32,
    /// The event has released slots automatically, and has come after all other events since.
    pub is_deferred: bool,
    /// When the last call began, since the event last came back.
    pub last_call_since: Option<Timestamp>,
    /// When the last calls of earlier appearances began, before the event went and came back.
    pub former_calls: Vec<Timestamp>,
    /// When the event was last listed as still to come, or grew, though the event may have been approved.
    pub reopened: Option<Timestamp>,
    /// When the event last gave its slots back, oldest first, for the event's history.
    pub gave_back: Vec<Timestamp>,
    /// Until when no disruptive hook may begin although the event has its slots, so the budget counts from this time;
    /// `Timestamp::MAX` while the end is unknown.
    pub halted_until: Option<Timestamp>,
}

impl Event {
    pub fn first_seen_as(announcement: Announcement, by: VmName, at: Timestamp) -> Self {
        Self {
            announcement,
            decided_at_revision: 1,
            seen_by: BTreeSet::from([by]),
            entered: alloc::vec![(Stage::Announced, at)],
            revision: 1,
            treatment: None,
            attempts: Vec::new(),
            waivers: Vec::new(),
            claims: Vec::new(),
            isolated_approvals: Vec::new(),
            ending: None,
            departed: BTreeSet::new(),
            drill: None,
            operator_records: Vec::new(),
            treated: None,
            impacts: BTreeMap::new(),
            slots_since: None,
            stuck_since: None,
            times_given_back: 0,
            is_deferred: false,
            last_call_since: None,
            former_calls: Vec::new(),
            reopened: None,
            gave_back: Vec::new(),
            halted_until: None,
        }
    }

    pub fn stage(&self) -> Stage {
        self.entered.last().map_or(Stage::Closed, |(stage, _)| *stage)
    }

    /// The stages that led to the current stage, newest first, without stages that were reverted.
    pub fn stage_history(&self) -> impl Iterator<Item = (Stage, Timestamp)> {
        let mut next = None;
        self.entered.iter().rev().copied().filter(move |(stage, _)| {
            let is_on_the_way = next.is_none_or(|next| *stage < next);
            if is_on_the_way {
                next = Some(*stage);
            }
            is_on_the_way
        })
    }

    /// When the event entered a stage that led to the current stage; `None` when the event did not enter the stage, or
    /// reverted it.
    pub fn entered_at(&self, stage: Stage) -> Option<Timestamp> {
        self.stage_history().find(|(entered, _)| *entered == stage).map(|(_, at)| at)
    }

    pub fn first_seen(&self) -> Timestamp {
        self.entered.first().map_or(Timestamp(0), |(_, at)| *at)
    }

    /// When the event left the document.
    pub fn over_at(&self) -> Option<Timestamp> {
        self.stage_history().filter(|(stage, _)| stage.is_over()).last().map(|(_, at)| at)
    }

    pub fn is_user_initiated(&self) -> bool {
        self.announcement.source == Source::User
    }

    pub fn is_scheduled(&self) -> bool {
        self.announcement.status == Status::Scheduled
    }

    pub fn affects(&self, vm: &VmName) -> bool {
        self.announcement.resources.contains(vm) && !self.departed.contains(vm)
    }

    /// The event deletes its VMs, and has begun to. A post without a reply is no proof.
    pub fn deletes_vms(&self) -> bool {
        let is_done = || self.ending == Some(Ending::Completed) && self.is_accepted();
        self.announcement.kind == EventType::Terminate && (self.entered_at(Stage::Started).is_some() || is_done())
    }

    /// When the platform starts the event without an approval.
    pub fn notice_ends(&self) -> Timestamp {
        match self.announcement.not_before {
            NotBefore::At(at) => at,
            NotBefore::Unknown => self.first_seen().plus(self.announcement.kind.minimum_notice()),
        }
    }

    /// How long an event without progress keeps members out.
    pub fn give_back_after(&self) -> Duration {
        self.treatment.as_ref().map_or(Duration::ZERO, |treatment| treatment.give_back_after)
    }

    /// When the log recorded that the platform accepted an approval; `None` without acceptance.
    pub fn accepted_at(&self) -> Option<Timestamp> {
        let of_claims = self.claims.iter().map(|claim| &claim.outcome);
        let posts = of_claims.chain(self.isolated_approvals.iter().map(|takeover| &takeover.outcome)).flatten();
        posts.filter(|(outcome, _)| *outcome == PostOutcome::Accepted).map(|(_, at)| *at).min()
    }

    /// Since when the event is approved: an approval by an isolated replica reaches the log later.
    pub fn approved_since(&self) -> Option<Timestamp> {
        let recorded = self.entered_at(Stage::Approved)?;
        let reported = self.isolated_approvals.iter().filter(|alone| alone.recorded <= Some(recorded));
        let outcomes = reported.filter_map(|alone| alone.outcome.as_ref());
        let accepted = outcomes.filter(|(outcome, _)| *outcome == PostOutcome::Accepted).map(|(_, at)| *at);
        accepted.chain([recorded]).min()
    }

    /// The event may be approved, and came back or grew: preparation runs as in a last call.
    pub fn is_reopened(&self) -> bool {
        self.reopened.is_some() && self.stage() == Stage::Approved
    }

    pub fn is_accepted(&self) -> bool {
        self.accepted_at().is_some()
    }

    /// A post of this cluster may have reached the platform.
    pub fn may_have_been_approved(&self) -> bool {
        self.claims.iter().any(Claim::may_have_been_posted) || self.has_isolated_approval()
    }

    /// Whether the approval can still be held, hastened or given: the cluster accepts such requests of operators.
    pub fn is_undecided(&self) -> bool {
        self.stage() <= Stage::Preparing && !self.may_have_been_approved()
    }

    /// The event is about to begin, or has begun, whatever this cluster does from now on.
    pub fn is_under_way(&self) -> bool {
        let is_claimed = (Stage::Claimed..=Stage::Started).contains(&self.stage());
        is_claimed || self.last_call_since.is_some() || self.may_have_been_approved()
    }

    /// The event was started, or may be approved.
    pub fn may_have_started(&self) -> bool {
        self.entered_at(Stage::Started).is_some() || self.may_have_been_approved()
    }

    /// A closed event that is listed again is the same maintenance, still to come: the event was cancelled for a while,
    /// or was out of sight of every replica for long.
    pub fn may_come_back(&self) -> bool {
        match self.ending {
            Some(Ending::Cancelled) => true,
            Some(Ending::Forgotten) => !self.may_have_started(),
            Some(Ending::Completed | Ending::Drilled | Ending::Interrupted) | None => false,
        }
    }

    /// The claim without a recorded post.
    pub fn open_claim(&self) -> Option<&Claim> {
        self.claims.last().filter(|claim| claim.outcome.is_none())
    }
}

/// The ending of an event, fixed when the event left the document.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ending {
    Completed,
    /// Started was never seen and no replica of this cluster approved, or a VM outlived its deletion.
    Cancelled,
    /// No document has listed the event for so long that the event is no longer waited for.
    Forgotten,
    /// A drill ran as far as possible.
    Drilled,
    /// A real event or an operator ended the drill.
    Interrupted,
}

string_enum!(Ending {
    Completed => "completed",
    Cancelled => "cancelled",
    Forgotten => "forgotten",
    Drilled => "drilled",
    Interrupted => "interrupted",
});

impl Event {
    pub fn is_drill(&self) -> bool {
        self.drill.is_some()
    }

    pub fn is_dry_run(&self) -> bool {
        self.drill.as_ref().is_some_and(|drill| drill.mode == Mode::DryRun)
    }
}
