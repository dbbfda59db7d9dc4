//! The VM of each member of a Patroni cluster: the VM with the member's name, or the VM in the configuration's
//! `members`.

use crate::hooks::http::facts::Facts;
use allclear_core::model::id::VmName;

/// Members and their VMs. Without an entry every member has the name of its VM.
#[derive(Default)]
pub(super) struct MemberVms(Vec<(String, VmName)>);

impl MemberVms {
    pub(super) fn new(members: &[(String, String)]) -> Self {
        Self(members.iter().map(|(member, vm)| (member.clone(), VmName::new(vm))).collect())
    }

    /// `None` for a member missing in `members`: whether an event takes its VM is unknown.
    pub(super) fn vm_of(&self, member: &str) -> Option<VmName> {
        if self.0.is_empty() {
            return Some(VmName::new(member));
        }
        self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(member)).map(|(_, vm)| vm.clone())
    }

    /// Whether the event names the member's VM.
    pub(super) fn is_going(&self, member: &str, facts: &Facts) -> Result<bool, String> {
        let vm = self.vm_of(member).ok_or_else(|| missing(member))?;
        Ok(vm == VmName::new(facts.text("vm")) || facts.texts("event_resources").any(|it| VmName::new(it) == vm))
    }

    /// Whether nothing may be moved to the member's VM.
    pub(super) fn is_avoided(&self, member: &str, facts: &Facts) -> Result<bool, String> {
        let vm = self.vm_of(member).ok_or_else(|| missing(member))?;
        Ok(self.is_going(member, facts)? || facts.texts("avoid_vms").any(|it| VmName::new(it) == vm))
    }

    /// Members of the configuration, for comparison with Patroni's members.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &VmName)> {
        self.0.iter().map(|(member, vm)| (member.as_str(), vm))
    }
}

pub(super) fn missing(member: &str) -> String {
    format!("{member} is not in `members` of the hook: add the member with its VM")
}
