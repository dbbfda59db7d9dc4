//! The platform's actions on the machines after the start of an event.

use std::rc::Rc;
use std::time::Duration;

use super::cloud;
use super::event_queue::QueuedEvent;
use super::world::World;
use allclear_core::model::document::EventType;
use allclear_core::model::id::EventId;

/// The interval between checks of the platform.
const EVERY: Duration = Duration::from_millis(250);
/// A machine preempted for a higher bidder is back after this time.
const BACK_FROM_PREEMPTION: Duration = Duration::from_mins(3);

impl World {
    pub(super) fn look_at_the_cloud(self: &Rc<Self>) {
        let happened = {
            let mut cloud = self.cloud.borrow_mut();
            cloud.advance(self.now());
            cloud.take_history()
        };
        for cloud::HistoryEntry { event, what, .. } in happened {
            match what {
                cloud::PlatformOccurrence::Started(cause) => {
                    self.tell(|| format!("the platform starts {event}: {cause:?}"));
                    self.strike(&event);
                }
                // The hardware has failed already.
                cloud::PlatformOccurrence::Announced if self.is_impacted_by(&event) => self.strike(&event),
                cloud::PlatformOccurrence::Ended(end) => self.tell(|| format!("{event} is over: {end:?}")),
                _ => {}
            }
        }
        if self.is_healed.get() {
            self.start_who_can();
        }
        self.put_in(EVERY, QueuedEvent::Cloud);
    }

    /// Starts every stopped machine that no event interrupts.
    pub(super) fn start_who_can(self: &Rc<Self>) {
        for vm in (0..self.nodes.len()).filter(|vm| !self.nodes[*vm].is_up() && !self.is_impacted(*vm)) {
            self.start(vm);
        }
    }

    fn strike(self: &Rc<Self>, id: &EventId) {
        let (kind, resources, impact) = {
            let cloud = self.cloud.borrow();
            let Some(event) = cloud.event(id) else { return };
            (event.plan.kind.clone(), event.plan.resources.clone(), event.plan.impact)
        };
        for vm in resources.iter().filter_map(|name| self.vm(name)) {
            match kind {
                EventType::Freeze => self.freeze(vm, impact),
                EventType::Reboot | EventType::Redeploy | EventType::Other(_) => {
                    self.crash(vm, impact, true);
                }
                EventType::Preempt => {
                    self.crash(vm, BACK_FROM_PREEMPTION, true);
                }
                EventType::Terminate => {
                    self.crash(vm, impact, true);
                    self.nodes[vm].body.borrow_mut().is_deleted = true;
                }
            }
        }
    }

    fn is_impacted_by(&self, id: &EventId) -> bool {
        self.cloud.borrow().event(id).is_some_and(|event| event.started.is_some())
    }

    /// True if an event interrupts the machine; such a machine restarts by itself.
    pub(super) fn is_impacted(&self, vm: usize) -> bool {
        self.cloud.borrow().is_impacted(&self.nodes[vm].name)
    }
}
