//! The attempts and waivers of an event.

use crate::model::attempt::{Attempt, Waiver};
use crate::model::event::Event;
use crate::model::hook_id::HookId;
use crate::model::id::AttemptId;
use crate::model::time::Timestamp;
use crate::model::workload::{Intent, Member, Phase};
use alloc::string::String;

impl Event {
    /// The identity of one hook of one workload in this event, equal for every attempt, leader and restart. The time of
    /// the first sight distinguishes the return of an event under the same id, and the stint distinguishes a second
    /// departure of a restored member.
    pub fn step_id(&self, attempt: &Attempt) -> String {
        let (id, Timestamp(first_seen)) = (&self.announcement.id, self.first_seen());
        let Attempt { member: Member { vm, workload }, hook: HookId { phase, key }, stint, .. } = attempt;
        let stint = if *phase == Phase::Checkpoint { 0 } else { *stint };
        alloc::format!("{id}@{first_seen}.{stint}/{vm}/{workload}/{phase}/{key:x}")
    }

    /// The reason for which the event does not wait for the hook.
    pub(crate) fn waiver(&self, member: &Member, hook: HookId) -> Option<&Waiver> {
        self.waivers.iter().find(|waiver| waiver.member == *member && waiver.hook == hook)
    }

    pub fn attempt(&self, id: AttemptId) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| attempt.id == id)
    }

    /// Adds an attempt. A new run of a blocked hook replaces the blocked attempt.
    pub(crate) fn begin(&mut self, begun: Attempt) {
        let last = self.attempts.iter_mut().rev().find(|it| it.hook == begun.hook && it.member == begun.member);
        let is_again = |it: &Attempt| {
            let is_same = (it.intent, it.stint, &it.on) == (begun.intent, begun.stint, &begun.on);
            is_same && it.is_blocked()
        };
        if let Some(last) = last.filter(|it| is_again(it)) {
            *last = Attempt { blocked: last.blocked, ..begun };
        } else {
            self.revision += 1;
            self.attempts.push(begun);
        }
    }

    /// The attempts of one hook of one workload, oldest first.
    pub fn attempts_of<'a>(&'a self, member: &Member, hook: HookId) -> impl DoubleEndedIterator<Item = &'a Attempt> {
        self.attempts.iter().filter(move |attempt| attempt.hook == hook && attempt.member == *member)
    }

    /// The attempts that run or confirm the hook, without undo attempts.
    pub fn forward_attempts_of<'a>(
        &'a self,
        member: &Member,
        hook: HookId,
    ) -> impl DoubleEndedIterator<Item = &'a Attempt> {
        self.attempts_of(member, hook).filter(|attempt| attempt.intent != Intent::Undo)
    }

    /// A hook that prepares was started for this workload, so a restore is mandatory; on a deleted VM no restore is.
    pub fn was_prepared(&self, member: &Member) -> bool {
        let is_deleted = self.departed.contains(&member.vm) || (self.deletes_vms() && self.affects(&member.vm));
        let prepared = |attempt: &Attempt| attempt.hook.phase < Phase::Restore && attempt.intent == Intent::Run;
        !is_deleted && self.attempts.iter().any(|attempt| prepared(attempt) && attempt.member == *member)
    }
}
