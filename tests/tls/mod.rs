//! Claim: replicas with certificates communicate only with replicas of their cluster. A peer with a wrong certificate
//! or none, on either side, is refused, counted and logged; certificates are renewed and authorities replaced without a
//! restart; and half-open connections obstruct no other connection. The certificates are made here, the replicas are
//! processes of the real program.

mod certs;
mod check;
mod dialled;
mod dialling;
mod flood;
mod impostors;
pub(crate) mod knock;
mod lives;
mod named;
pub(crate) mod pki;
mod removed;
mod renewal;

use crate::cluster::cluster;
use crate::cluster::resolver;
use crate::cluster::workload;
