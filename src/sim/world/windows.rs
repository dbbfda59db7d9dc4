//! Faults that last, and whether a fault had an effect.

use std::time::Duration;

use super::super::scenario::{Fault, FaultKind, ScenarioAction};
use super::{BEGIN, World};
use allclear_core::model::time::Timestamp;

pub(super) struct Window {
    place: usize,
    until: Timestamp,
    fault: Fault,
}

impl World {
    /// Starts a fault that lasts.
    pub(crate) fn open_window(&self, place: usize, fault: Fault) {
        let heal = BEGIN.plus(self.scenario.heal_at);
        let until = self.now().plus(fault.lasts).min(heal);
        self.windows.borrow_mut().push(Window { place, until, fault });
    }

    pub(crate) fn close_windows(&self) {
        self.windows.borrow_mut().clear();
    }

    /// True if a fault of this kind is in force; marks the effect of the fault.
    pub(crate) fn is_hit(&self, by: impl Fn(&FaultKind) -> bool) -> bool {
        self.slowest(|_, kind| by(kind).then_some(Duration::ZERO)).is_some()
    }

    /// True if a fault of this kind is in force; without marking an effect.
    pub(crate) fn is_in_force(&self, which: impl Fn(&FaultKind) -> bool) -> bool {
        let now = self.now();
        self.windows.borrow().iter().any(|window| now < window.until && which(&window.fault.kind))
    }

    /// The maximum of `by` over the faults in force, each at its machine; marks the effect of each fault with a value.
    pub(crate) fn slowest<T: Ord>(&self, by: impl Fn(usize, &FaultKind) -> Option<T>) -> Option<T> {
        let now = self.now();
        let mut windows = self.windows.borrow_mut();
        if windows.is_empty() {
            return None;
        }
        windows.retain(|window| now < window.until);
        let mut found = None;
        for window in windows.iter() {
            if let Some(told) = by(window.fault.vm, &window.fault.kind) {
                self.effects.borrow_mut()[window.place] = true;
                found = found.max(Some(told));
            }
        }
        found
    }

    pub(crate) fn took_effect(&self, place: usize) {
        self.effects.borrow_mut()[place] = true;
    }

    /// The number of planned faults that have had an effect.
    pub(crate) fn effective(&self) -> usize {
        let effects = self.effects.borrow();
        let faults = self.scenario.happenings.iter().zip(effects.iter());
        faults.filter(|(happening, effect)| matches!(happening.what, ScenarioAction::Fault(_)) && **effect).count()
    }
}
