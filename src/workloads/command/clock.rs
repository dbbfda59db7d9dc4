//! The one read of the wall clock in this room: a supervisor is a process of its own and has nobody to ask, and a
//! workload says when it will be done from now on.

use std::time::SystemTime;

use crate::machine::time::Timestamp;

pub(in crate::workloads) fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::default().plus(since_epoch)
}
