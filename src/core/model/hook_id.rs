//! The identity of a hook: the content, not the position (`SPEC.md` 14.1). So a restart with an added, removed or
//! changed hook repeats no completed hook, and skips no new hook.

use crate::model::workload::{Hook, Phase, Workload};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The identity of a hook within a workload: the phase, and a key within the phase.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HookId {
    pub phase: Phase,
    /// A digest of the hook's name, or of the command of a hook without a name.
    pub key: u64,
}

/// A digest that is equal on every machine and in every version (FNV-1a, 64 bits). The digest distinguishes hooks of
/// one workload, and is not cryptographic.
pub fn digest<'a>(parts: impl IntoIterator<Item = &'a str>) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let eat = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    // No text contains the byte that ends each part.
    let bytes = parts.into_iter().flat_map(|part| part.bytes().chain([u8::MAX]));
    bytes.fold(BASIS, eat)
}

/// Operators call a hook by name or by number, so a name must not look like a number.
pub fn is_hook_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(is_letter) && !text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Hook {
    /// Both hooks have equal registrations, apart from the digest, which the workload does not choose.
    pub(crate) fn is_same_registration(&self, other: &Self) -> bool {
        Self { command_digest: 0, ..self.clone() } == Self { command_digest: 0, ..other.clone() }
    }

    /// Both hooks have the same id.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.phase, self.key()) == (other.phase, other.key())
    }

    fn key(&self) -> u64 {
        self.name.as_deref().map_or(self.command_digest, |name| digest(["name", name]))
    }
}

impl Workload {
    /// The hooks of a phase with their ids, in the order in which they run.
    pub fn hooks_of(&self, phase: Phase) -> impl Iterator<Item = (HookId, &Hook)> {
        let of_phase = move || self.hooks.iter().filter(move |hook| hook.phase == phase);
        of_phase().enumerate().map(move |(place, hook)| {
            // A command that runs twice in a phase is two hooks.
            let earlier = of_phase().take(place).filter(|other| other.key() == hook.key()).count();
            let key = hook.key().wrapping_add(u64::try_from(earlier).unwrap_or(u64::MAX));
            (HookId { phase, key }, hook)
        })
    }

    pub fn hook(&self, id: HookId) -> Option<&Hook> {
        self.hooks_of(id.phase).find(|(found, _)| *found == id).map(|(_, hook)| hook)
    }

    /// The position of the hook within the phase, from 0.
    pub fn place_of(&self, id: HookId) -> Option<usize> {
        self.hooks_of(id.phase).position(|(found, _)| found == id)
    }

    /// Both workloads have equal registrations, apart from the hooks' digests, which the workloads do not choose.
    pub fn is_same_registration(&self, other: &Self) -> bool {
        let hooks = self.hooks.len() == other.hooks.len()
            && self.hooks.iter().zip(&other.hooks).all(|(one, other)| one.is_same_registration(other));
        let rest = |it: &Self| Self { hooks: Vec::new(), ..it.clone() };
        hooks && rest(self) == rest(other)
    }

    /// The hook of this workload that corresponds to a hook of another workload of the group: the hook of the same
    /// name, or for a hook without a name the hook at the same position, because commands name their own machine.
    pub fn counterpart(&self, other: &Self, id: HookId) -> Option<HookId> {
        let (place, hook) = (other.place_of(id)?, other.hook(id)?);
        let mut own = self.hooks_of(id.phase);
        let found = match &hook.name {
            Some(_) => own.find(|(_, own)| own.name == hook.name),
            None => own.nth(place).filter(|(_, own)| own.name.is_none()),
        };
        found.map(|(id, _)| id)
    }

    /// The operators' name of the hook within the workload: the configured name, else the number; the first hook of a
    /// phase has none.
    pub(crate) fn hook_name(&self, id: HookId) -> Option<String> {
        let place = self.place_of(id)?;
        Some(match self.hook(id)?.name.as_deref() {
            Some(name) => format!("{}#{name}", id.phase),
            None if place == 0 => format!("{}", id.phase),
            None => format!("{}#{}", id.phase, place + 1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::WorkloadName;
    use crate::model::workload::{OnAbsent, Origin};

    fn workload(hooks: impl Into<Vec<Hook>>) -> Workload {
        Workload {
            name: WorkloadName("w".into()),
            group: None,
            after: Vec::new(),
            hooks: hooks.into(),
            origin: Origin::Configured,
            on_absent: OnAbsent::Hold,
        }
    }

    fn named(phase: Phase, name: &str) -> Hook {
        Hook { name: Some(name.into()), ..Hook::of(phase) }
    }

    fn runs(phase: Phase, runs: u64) -> Hook {
        Hook { command_digest: runs, ..Hook::of(phase) }
    }

    fn ids(workload: &Workload, phase: Phase) -> Vec<HookId> {
        workload.hooks_of(phase).map(|(id, _)| id).collect()
    }

    #[test]
    fn a_hook_stays_itself_when_others_come_and_go_before_it() {
        let one = workload([runs(Phase::Drain, 7), runs(Phase::Drain, 8), named(Phase::Drain, "queue")]);
        let other = workload([named(Phase::Drain, "queue"), runs(Phase::Drain, 9), runs(Phase::Drain, 8)]);
        let (one, other) = (ids(&one, Phase::Drain), ids(&other, Phase::Drain));
        assert_eq!((one[1], one[2]), (other[2], other[0]));
        assert!(!other.contains(&one[0]));
    }

    #[test]
    fn what_is_run_twice_in_a_phase_is_two_hooks() {
        let twice = workload([runs(Phase::Drain, 7), runs(Phase::Drain, 7), runs(Phase::Shutdown, 7)]);
        let ids: Vec<HookId> = Phase::ALL.into_iter().flat_map(|phase| ids(&twice, phase)).collect();
        assert_eq!(ids.len(), 3);
        assert!(ids[0] != ids[1] && ids.iter().all(|id| twice.hook(*id).is_some()));
    }

    #[test]
    fn a_peer_runs_the_hook_of_the_same_name_or_the_one_at_its_place() {
        let own = workload([runs(Phase::Drain, 1), named(Phase::Drain, "queue"), runs(Phase::Drain, 2)]);
        let peer = workload([runs(Phase::Drain, 3), runs(Phase::Drain, 4), named(Phase::Drain, "queue")]);
        let (of_own, of_peer) = (ids(&own, Phase::Drain), ids(&peer, Phase::Drain));
        let counterparts: Vec<_> = of_own.iter().map(|id| peer.counterpart(&own, *id)).collect();
        // The peer's hook at the third position has a name, so it is another hook.
        assert_eq!(counterparts, [Some(of_peer[0]), Some(of_peer[2]), None]);
    }

    #[test]
    fn texts_that_are_cut_elsewhere_have_another_digest() {
        assert_ne!(digest(["ab", "c"]), digest(["a", "bc"]));
        assert_ne!(digest(["ab"]), digest(["ab", ""]));
        assert_eq!(digest(["name", "queue"]), 0x9f70_6f8c_69a4_734f);
    }
}
