//! Which user dialled in as which workload. What is another user's is let be by all but root and the replica's own: its
//! name as long as it is there, and its registration.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tonic::Status;

use super::super::users::Users;
use crate::machine::id::WorkloadName;
use crate::machine::state::WORKLOAD_LIMIT;
use crate::replica::deeds::{Refusals, Refused};
use crate::workloads::session::Sessions;

/// As far as this life of the replica knows.
pub(super) struct Holders {
    trusted: Users,
    uids: Mutex<BTreeMap<WorkloadName, u32>>,
}

impl Holders {
    pub(super) fn new() -> Self {
        Self { trusted: Users::own_and(&[]), uids: Mutex::default() }
    }

    /// Before it dials in under this name.
    pub(super) fn may_take(
        &self,
        sessions: &Sessions,
        name: &WorkloadName,
        uid: u32,
        refusals: &Refusals,
    ) -> Result<(), Status> {
        let is_there = sessions.presences().iter().any(|each| each.workload.name == *name && each.connected);
        if is_there { self.may_remove(name, uid, refusals) } else { Ok(()) }
    }

    pub(super) fn may_remove(&self, name: &WorkloadName, uid: u32, refusals: &Refusals) -> Result<(), Status> {
        let holder = self.uids.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied();
        let other = holder.filter(|holder| *holder != uid && !self.trusted.is_trusted(uid));
        let Some(holder) = other else { return Ok(()) };
        refusals.note(Refused::Session, &format!("uid {uid}"), None, &name.0);
        Err(Status::permission_denied(format!("{name} is the workload of uid {holder}, and you are uid {uid}")))
    }

    pub(super) fn note(&self, sessions: &Sessions, name: &WorkloadName, uid: u32) {
        let mut holders = self.uids.lock().unwrap_or_else(PoisonError::into_inner);
        if holders.len() >= WORKLOAD_LIMIT {
            holders.retain(|name, _| sessions.is_seated(name));
        }
        holders.insert(name.clone(), uid);
    }
}
