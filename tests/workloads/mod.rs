//! Hooks are run as `SPEC.md` 14 says, once each, whatever happens to the replica: with real processes.

mod bench;
mod command;
mod confined;
mod contract;
mod ending;
mod full_disks;
mod hostile;
mod http;
mod kind;
mod moments;
mod patroni;
mod restart;
mod roles;
mod secrets;
mod secured;
pub(crate) mod server;
mod stand_in;
mod user;

use crate::notify::certificates;
