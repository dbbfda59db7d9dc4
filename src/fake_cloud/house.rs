//! What all endpoints and the control interface share: the tenant behind one lock, the clock, and the end.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::tenant::Tenant;
use crate::machine::id::VmName;
use crate::machine::time::Timestamp;

#[derive(Debug)]
pub(super) struct House {
    tenant: Mutex<Tenant>,
    pub(super) clock: Clock,
    /// Something may have happened before its time: whoever waits for news looks again.
    pub(super) news: Notify,
    pub(super) stop: CancellationToken,
    /// `http://ADDRESS`, with control and every VM by path.
    pub(super) base: String,
    /// The same for each VM's own port, in the order of the VMs.
    pub(super) ports: Vec<(VmName, String)>,
}

impl House {
    pub(super) fn new(tenant: Tenant, clock: Clock, base: String, ports: Vec<(VmName, String)>) -> Self {
        Self { tenant: Mutex::new(tenant), clock, news: Notify::new(), stop: CancellationToken::new(), base, ports }
    }

    /// Held for one decision, never over an `await`.
    pub(super) fn tenant(&self) -> MutexGuard<'_, Tenant> {
        // Nothing panics while it holds the lock; if it did, the state is still whole enough to look at.
        self.tenant.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn since_1970(&self) -> Duration {
        self.clock.since_1970()
    }
}
