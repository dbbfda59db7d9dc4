//! The check of `replica.name` against Azure's name of the VM. Events contain Azure's name, so a replica under another
//! name takes every event of its own VM for a foreign event.

use std::sync::{Mutex, PoisonError};

use prometheus::{IntGauge, Registry};

use super::registration::registered;
use crate::clock;
use allclear_core::model::id::VmName;
use allclear_core::model::time::Timestamp;

pub struct VmNameCheck {
    differs: IntGauge,
    told: Mutex<Option<(Timestamp, VmName)>>,
}

impl VmNameCheck {
    pub(super) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let help = "1 while the instance metadata calls this VM by another name than replica.name.";
        let differs = registered(registry, IntGauge::new("allclear_vm_name_differs", help)?)?;
        Ok(Self { differs, told: Mutex::default() })
    }

    /// Records the name in the instance metadata.
    pub fn note(&self, own: &VmName, told: VmName) {
        let mut known = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if *own == told {
            *known = None;
        } else if known.as_ref().is_none_or(|(_, before)| *before != told) {
            tracing::warn!(replica.name = %own, vm = %told, "replica.name is not Azure's name of this VM");
            *known = Some((clock::now(), told));
        }
        self.differs.set(i64::from(known.is_some()));
    }

    /// Azure's name, if different from the replica's, with the time of the first sight.
    pub fn differs(&self) -> Option<(Timestamp, VmName)> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
