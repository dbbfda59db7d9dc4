//! Approvers, and the effect of an approval. An approval counts for every VM of the event and cannot be undone.

use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::time::Timestamp;

use super::Cloud;
use super::due::PlatformChange;

/// The source of an approval.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Approver {
    /// From inside the VM.
    Vm(VmName),
    /// A policy, the control plane, an operator.
    Other(String),
}

/// The effect of an approval on the platform. The status code of the reply is the concern of `fake_cloud`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ApprovalEffect {
    /// The first approval.
    Accepted,
    /// Another approval was first.
    Repeated,
    Started,
    Finished,
    /// Never announced, or not to this VM.
    Unknown,
}

impl Cloud {
    /// Processes an approval at the given time.
    pub fn approve(&mut self, now: Timestamp, by: Approver, id: &EventId) -> ApprovalEffect {
        self.advance(now);
        let Some(ordinal) = self.events.iter().position(|event| event.id == *id) else {
            return ApprovalEffect::Unknown;
        };
        let Some(event) = self.events.get(ordinal) else { return ApprovalEffect::Unknown };
        if let Approver::Vm(vm) = &by
            && !self.is_shown_to(vm, event)
            && event.ended.is_none()
        {
            return ApprovalEffect::Unknown;
        }
        if event.ended.is_some() {
            return ApprovalEffect::Finished;
        }
        if event.started.is_some() {
            return ApprovalEffect::Started;
        }
        if event.accepted.is_some() {
            return ApprovalEffect::Repeated;
        }
        self.apply_change(ordinal, PlatformChange::Accept(by));
        self.settle();
        ApprovalEffect::Accepted
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Audience, EventEnd, EventPlan, PlatformBehaviour, Vm};
    use allclear_core::model::document::{EventType, Source};

    const BEGIN: Timestamp = Timestamp(1_000_000);

    fn cloud() -> Cloud {
        let vms = ["a", "b"].map(|name| Vm { name: VmName::new(name), zone: None });
        Cloud::new(vms, PlatformBehaviour::default(), 1, BEGIN)
    }

    fn freeze() -> EventPlan {
        EventPlan::new(EventType::Freeze, Source::Platform, vec![VmName::new("a")])
    }

    fn by(vm: &str) -> Approver {
        Approver::Vm(VmName::new(vm))
    }

    #[test]
    fn the_first_approval_counts_and_is_kept() {
        let mut cloud = cloud();
        let id = cloud.announce(BEGIN, EventPlan { other_tenants: Duration::from_mins(5), ..freeze() }).unwrap();
        assert_eq!(cloud.approve(BEGIN, by("b"), &id), ApprovalEffect::Accepted);
        assert_eq!(cloud.approve(BEGIN, by("a"), &id), ApprovalEffect::Repeated);
        assert_eq!(cloud.event(&id).unwrap().accepted, Some((BEGIN, by("b"))));
    }

    #[test]
    fn what_is_not_scheduled_is_told_apart() {
        let mut cloud = cloud();
        let started = cloud.announce(BEGIN, freeze()).unwrap();
        cloud.start(BEGIN, &started).unwrap();
        let ended = cloud.announce(BEGIN, freeze()).unwrap();
        cloud.cancel(BEGIN, &ended).unwrap();
        let hidden =
            cloud.announce(BEGIN, EventPlan { seen_by: Audience::Only(vec![VmName::new("a")]), ..freeze() }).unwrap();
        assert_eq!(cloud.approve(BEGIN, by("a"), &started), ApprovalEffect::Started);
        assert_eq!(cloud.approve(BEGIN, by("a"), &ended), ApprovalEffect::Finished);
        assert_eq!(cloud.approve(BEGIN, by("b"), &hidden), ApprovalEffect::Unknown);
        assert_eq!(cloud.approve(BEGIN, by("a"), &hidden), ApprovalEffect::Accepted);
        assert_eq!(cloud.approve(BEGIN, by("a"), &EventId::new("none")), ApprovalEffect::Unknown);
    }

    #[test]
    fn an_approval_at_the_moment_of_the_end_comes_too_late() {
        let mut cloud = cloud();
        let id = cloud.announce(BEGIN, EventPlan { cancel_after: Some(Duration::from_secs(1)), ..freeze() }).unwrap();
        let end = BEGIN.plus(Duration::from_secs(1));
        assert_eq!(cloud.approve(end, by("a"), &id), ApprovalEffect::Finished);
        assert_eq!(cloud.event(&id).unwrap().ended, Some((end, EventEnd::Cancelled)));
    }
}
