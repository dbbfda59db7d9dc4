//! A step: one hook of one affected workload.

use crate::model::attempt::Attempt;
use crate::model::hook_id::HookId;
use crate::model::workload::{Hook, Intent, Member, OnAbsent, OnFailure};
use alloc::vec::Vec;

/// One hook of one affected workload.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    pub member: Member,
    pub id: HookId,
    pub hook: &'a Hook,
    /// The workload dials in and is away: what that means.
    pub when_disconnected: Option<OnAbsent>,
    /// The stint in which a disruptive hook is begun now; 0 where the event does not keep the member out.
    pub stint: u64,
    /// Those that count, oldest first: of a disruptive hook those of the present stint.
    pub attempts: Vec<&'a Attempt>,
    /// In this stint the hook was done for another event.
    pub is_done_elsewhere: bool,
    /// What was begun is taken back.
    pub is_undo: bool,
    /// The hook's own, unless its member was sick when somebody asked for the event (R3b).
    pub on_failure: OnFailure,
}

impl<'a> Step<'a> {
    /// The attempts that were to get it done: the others take it back.
    pub fn forward(&self) -> impl DoubleEndedIterator<Item = &'a Attempt> + '_ {
        self.attempts.iter().copied().filter(|attempt| attempt.intent != Intent::Undo)
    }
}

/// An attempt that may be begun now.
#[derive(Clone, Debug)]
pub struct Next<'a> {
    pub step: Step<'a>,
    pub intent: Intent,
}
