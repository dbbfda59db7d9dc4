//! The shared state of all endpoints and the control interface: the tenant behind one lock, the clock, and the
//! shutdown.

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
    /// Locks the tenant for one decision, never over an `await`.
    pub(super) fn tenant(&self) -> MutexGuard<'_, Tenant> {
        // No code panics while holding the lock; after a panic the state would still be consistent enough to read.
        self.tenant.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
