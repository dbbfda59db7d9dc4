//! The document and the incarnation of each VM. Documents differ between VMs: not every VM sees every event, and the
//! platform shows no events to a VM, or a zone, without requests.

use std::time::Duration;

use allclear_core::model::document::Announcement;
use allclear_core::model::id::VmName;
use allclear_core::model::time::Timestamp;

use super::event::PlatformEvent;
use super::plan::Audience;
use super::{Cloud, OrderError};

/// A VM of this tenant.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Vm {
    pub name: VmName,
    pub zone: Option<String>,
}

/// The behaviour of the platform towards every VM.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PlatformBehaviour {
    /// The incarnation of the first, empty document.
    pub first_incarnation: u64,
    /// The growth of the incarnation at each change of the array.
    pub incarnation_step: u64,
    /// From a VM's first request until events are shown to the VM.
    pub enrolment: Duration,
    /// After this long without a request the VM must enrol again, and its incarnation restarts.
    pub forget_after: Duration,
    /// Events are shown only when a VM in a zone of their resources is enrolled.
    pub zonal: bool,
}

impl Default for PlatformBehaviour {
    fn default() -> Self {
        Self {
            first_incarnation: 1,
            incarnation_step: 1,
            enrolment: Duration::ZERO,
            forget_after: Duration::from_hours(24),
            zonal: false,
        }
    }
}

/// One document, as data.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Notice {
    pub incarnation: u64,
    /// In the order of their announcements.
    pub events: Vec<Announcement>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct VmState {
    pub(super) vm: Vm,
    incarnation: u64,
    /// The array when the incarnation was last set.
    shown: Vec<Announcement>,
    enrolled_at: Option<Timestamp>,
    asked_at: Option<Timestamp>,
}

impl VmState {
    pub(super) fn new(vm: Vm, manners: &PlatformBehaviour) -> Self {
        let incarnation = manners.first_incarnation;
        Self { vm, incarnation, shown: Vec::new(), enrolled_at: None, asked_at: None }
    }

    fn is_enrolled(&self, manners: &PlatformBehaviour, now: Timestamp) -> bool {
        // Without an enrolment period events are shown before the first request: simpler to reason about in tests.
        manners.enrolment.is_zero() || self.enrolled_at.is_some_and(|at| at.plus(manners.enrolment) <= now)
    }
}

impl Cloud {
    /// Answers a VM's request for its document; the request counts for enrolment.
    pub fn poll(&mut self, now: Timestamp, vm: &VmName) -> Option<Notice> {
        self.advance(now);
        let (now, manners) = (self.now, &self.manners);
        let seat = self.seats.get_mut(vm)?;
        if seat.asked_at.is_some_and(|at| now.since(at) > manners.forget_after) {
            seat.incarnation = manners.first_incarnation;
            seat.enrolled_at = None;
        }
        seat.enrolled_at.get_or_insert(now);
        seat.asked_at = Some(now);
        self.refresh();
        self.notice(vm)
    }

    /// The current document, without a request.
    pub fn notice(&self, vm: &VmName) -> Option<Notice> {
        let seat = self.seats.get(vm)?;
        Some(Notice { incarnation: seat.incarnation, events: seat.shown.clone() })
    }

    /// The incarnation of this VM, or of all VMs, restarts; the array stays.
    pub fn restart_incarnation(&mut self, vm: Option<&VmName>) -> Result<(), OrderError> {
        let first = self.manners.first_incarnation;
        self.set_incarnations(vm, |_| first)
    }

    /// The incarnation of this VM, or of all VMs, changes without a change of the array.
    pub fn touch_incarnation(&mut self, vm: Option<&VmName>) -> Result<(), OrderError> {
        let step = self.manners.incarnation_step;
        self.set_incarnations(vm, |incarnation| incarnation.saturating_add(step))
    }

    /// The behaviour of the platform towards every VM.
    pub fn manners(&self) -> &PlatformBehaviour {
        &self.manners
    }

    /// Changes the platform's behaviour from now on.
    pub fn set_manners(&mut self, now: Timestamp, manners: PlatformBehaviour) {
        self.advance(now);
        self.manners = manners;
        self.refresh();
    }

    /// Sets the zone of a VM, for zonal clouds.
    pub fn set_zone(&mut self, vm: &VmName, zone: Option<String>) -> Result<(), OrderError> {
        let seat = self.seats.get_mut(vm).ok_or_else(|| OrderError::UnknownVm(vm.clone()))?;
        seat.vm.zone = zone;
        self.refresh();
        Ok(())
    }

    pub(super) fn is_shown_to(&self, vm: &VmName, event: &PlatformEvent) -> bool {
        let invited = match &event.plan.seen_by {
            Audience::Everyone => true,
            Audience::Only(vms) => vms.contains(vm),
        };
        invited
            && self.seats.get(vm).is_some_and(|seat| seat.is_enrolled(&self.manners, self.now))
            && (!self.manners.zonal || self.zone_is_polled(event))
    }

    fn zone_is_polled(&self, event: &PlatformEvent) -> bool {
        let zones: Vec<_> = event.plan.resources.iter().filter_map(|name| self.seats.get(name)).collect();
        // VMs outside this cloud have no zone here, so their events cannot be hidden.
        zones.is_empty()
            || self.seats.values().any(|seat| {
                zones.iter().any(|affected| affected.vm.zone == seat.vm.zone)
                    && seat.asked_at.is_some_and(|at| self.now.since(at) <= self.manners.forget_after)
            })
    }

    /// Updates every VM's array, and with each change the incarnation.
    pub(super) fn refresh(&mut self) {
        let arrays: Vec<Vec<Announcement>> = self
            .seats
            .keys()
            .map(|vm| {
                let shown = self.events.iter().filter(|event| self.is_shown_to(vm, event));
                shown.filter_map(PlatformEvent::announcement).collect()
            })
            .collect();
        for (seat, array) in self.seats.values_mut().zip(arrays) {
            if seat.shown != array {
                seat.shown = array;
                seat.incarnation = seat.incarnation.saturating_add(self.manners.incarnation_step);
            }
        }
    }

    fn set_incarnations(&mut self, vm: Option<&VmName>, next: impl Fn(u64) -> u64) -> Result<(), OrderError> {
        if let Some(vm) = vm
            && !self.seats.contains_key(vm)
        {
            return Err(OrderError::UnknownVm(vm.clone()));
        }
        for (name, seat) in &mut self.seats {
            if vm.is_none_or(|vm| vm == name) {
                seat.incarnation = next(seat.incarnation);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventPlan;
    use allclear_core::model::document::{EventType, Source};

    const BEGIN: Timestamp = Timestamp(1_000_000);

    fn vm(name: &str) -> VmName {
        VmName::new(name)
    }

    fn cloud(manners: PlatformBehaviour) -> Cloud {
        let zone = |name: &str| Some(format!("zone of {name}"));
        Cloud::new(["a", "b"].map(|name| Vm { name: vm(name), zone: zone(name) }), manners, 1, BEGIN)
    }

    fn reboot(of: &str) -> EventPlan {
        EventPlan::new(EventType::Reboot, Source::User, vec![vm(of)])
    }

    fn shown(cloud: &mut Cloud, after: Duration, name: &str) -> (u64, usize) {
        let notice = cloud.poll(BEGIN.plus(after), &vm(name)).unwrap();
        (notice.incarnation, notice.events.len())
    }

    #[test]
    fn the_incarnation_changes_with_the_array_of_the_vm_and_only_then() {
        let mut cloud = cloud(PlatformBehaviour::default());
        assert_eq!(shown(&mut cloud, Duration::ZERO, "a"), (1, 0));
        cloud.announce(BEGIN, EventPlan { seen_by: Audience::Only(vec![vm("a")]), ..reboot("a") }).unwrap();
        assert_eq!(shown(&mut cloud, Duration::ZERO, "a"), (2, 1));
        assert_eq!(shown(&mut cloud, Duration::from_mins(1), "a"), (2, 1));
        assert_eq!(shown(&mut cloud, Duration::from_mins(1), "b"), (1, 0));
        cloud.restart_incarnation(Some(&vm("a"))).unwrap();
        assert_eq!(shown(&mut cloud, Duration::from_secs(61), "a"), (1, 1));
        assert_eq!(cloud.poll(BEGIN, &vm("c")), None);
    }

    #[test]
    fn a_vm_that_was_silent_for_a_day_enrols_again_with_a_new_incarnation() {
        let mut cloud = cloud(PlatformBehaviour { enrolment: Duration::from_mins(5), ..PlatformBehaviour::default() });
        cloud.announce(BEGIN, EventPlan { notice: Duration::from_hours(24 * 7), ..reboot("a") }).unwrap();
        assert_eq!(shown(&mut cloud, Duration::ZERO, "a"), (1, 0));
        assert_eq!(shown(&mut cloud, Duration::from_secs(299), "a"), (1, 0));
        assert_eq!(shown(&mut cloud, Duration::from_mins(5), "a"), (2, 1));
        let next_day = Duration::from_hours(25);
        assert_eq!(shown(&mut cloud, next_day, "a").1, 0);
        assert_eq!(shown(&mut cloud, next_day + Duration::from_mins(5), "a").1, 1);
    }

    #[test]
    fn a_zone_is_on_while_one_of_its_vms_polls() {
        let mut cloud = cloud(PlatformBehaviour { zonal: true, ..PlatformBehaviour::default() });
        cloud.announce(BEGIN, reboot("b")).unwrap();
        assert_eq!(shown(&mut cloud, Duration::ZERO, "a").1, 0);
        assert_eq!(shown(&mut cloud, Duration::ZERO, "b").1, 1);
        assert_eq!(shown(&mut cloud, Duration::ZERO, "a").1, 1);
    }
}
