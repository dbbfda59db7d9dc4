//! A step: a hook of an affected workload.

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
    /// The `on_absent` setting, if the session workload is disconnected.
    pub when_disconnected: Option<OnAbsent>,
    /// The stint in which a disruptive hook is begun now; 0 unless the event keeps the member out.
    pub stint: u64,
    /// The attempts that count, oldest first: of a disruptive hook the attempts of the present stint.
    pub attempts: Vec<&'a Attempt>,
    /// Whether the hook was done for another event in this stint.
    pub is_done_elsewhere: bool,
    /// Whether the step undoes a hook.
    pub is_undo: bool,
    /// The setting of the hook, unless the member was sick when a user requested the event (R3b).
    pub on_failure: OnFailure,
}

impl<'a> Step<'a> {
    /// The attempts with an intent other than undo.
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
