//! Which user dialled in as which workload. What is another user's is let be by all but root and the replica's own: its
//! name as long as it is there, and its registration.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tonic::Status;

use super::connections::Users;
use crate::machine::id::WorkloadName;
use crate::workloads::session::{MAX_SEATS, Sessions};

/// As far as this life of the replica knows.
#[derive(Default)]
pub(super) struct Holders(Mutex<BTreeMap<WorkloadName, u32>>);

impl Holders {
    /// Before it dials in under this name.
    pub(super) fn may_take(
        &self,
        users: &Users,
        sessions: &Sessions,
        name: &WorkloadName,
        uid: u32,
    ) -> Result<(), Status> {
        let is_there = || sessions.presences().iter().any(|each| each.workload.name == *name && each.connected);
        self.other(users, name, uid).filter(|_| is_there()).map_or(Ok(()), |holder| Err(refusal(name, uid, holder)))
    }

    pub(super) fn may_remove(&self, users: &Users, name: &WorkloadName, uid: u32) -> Result<(), Status> {
        self.other(users, name, uid).map_or(Ok(()), |holder| Err(refusal(name, uid, holder)))
    }

    /// Another user who holds it, unless that is no matter to this one.
    fn other(&self, users: &Users, name: &WorkloadName, uid: u32) -> Option<u32> {
        let holders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        holders.get(name).copied().filter(|holder| *holder != uid && !users.is_trusted(uid))
    }

    pub(super) fn note(&self, sessions: &Sessions, name: &WorkloadName, uid: u32) {
        let mut holders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if holders.len() >= MAX_SEATS {
            holders.retain(|name, _| sessions.is_seated(name));
        }
        holders.insert(name.clone(), uid);
    }
}

fn refusal(name: &WorkloadName, uid: u32, holder: u32) -> Status {
    tracing::warn!(workload = %name, uid, holder, "somebody asked for a workload of another user");
    Status::permission_denied(format!("{name} is the workload of uid {holder}, and you are uid {uid}"))
}
