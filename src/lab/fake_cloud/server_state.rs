//! What all endpoints and the control interface share: the tenant behind one lock, the clock, and the end.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::tenant::Tenant;
use allclear_core::model::id::VmName;
use allclear_core::model::time::Timestamp;

#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) tenant: Mutex<Tenant>,
    pub(super) clock: Clock,
    pub(super) stop: CancellationToken,
    /// `http://ADDRESS` of each VM's port, in the order of the VMs.
    pub(super) ports: Vec<(VmName, String)>,
}

impl ServerState {
    /// Held for one decision, never over an `await`.
    pub(super) fn tenant(&self) -> MutexGuard<'_, Tenant> {
        // Nothing panics while it holds the lock; if it did, the state is still whole enough to look at.
        self.tenant.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
