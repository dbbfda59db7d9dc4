//! What a fake cloud that is being served can swear to: the events it announced, and every approval it was sent.

use super::serve::Running;
use crate::machine::id::{EventId, VmName};
use crate::simulator::cloud::Event;

/// One approval of one event that a VM posted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Post {
    pub event: EventId,
    pub vm: VmName,
    /// When it came, RFC 3339.
    pub at: String,
    /// What the platform made of it; nothing when it never got that far.
    pub result: Option<&'static str>,
    /// Whether it was the one that counts.
    pub took_effect: bool,
}

impl Running {
    /// The events announced so far, in that order, as they are now.
    pub fn events(&self) -> Vec<Event> {
        let mut tenant = self.house.tenant();
        tenant.cloud.advance(self.house.now());
        tenant.cloud.events().to_vec()
    }

    /// The events of the scenario under way, announced or not yet.
    pub fn scenario_events(&self) -> Vec<EventId> {
        let tenant = self.house.tenant();
        tenant.play.as_ref().map(|play| play.events.clone()).unwrap_or_default()
    }

    /// Every approval that came over the VMs' endpoints, oldest first; the newest thousands of requests are looked at.
    pub fn posts(&self) -> Vec<Post> {
        let tenant = self.house.tenant();
        let mut posts = Vec::new();
        for record in tenant.requests.after(0) {
            let (Some(approval), Some(vm)) = (&record.approval, &record.vm) else { continue };
            posts.extend(approval.events.iter().map(|event| Post {
                event: EventId::new(&event.id),
                vm: VmName::new(vm),
                at: record.at.clone(),
                result: event.result,
                took_effect: event.result == Some(ACCEPTED),
            }));
        }
        posts
    }
}

const ACCEPTED: &str = super::approve::word(crate::simulator::cloud::Approval::Accepted);
