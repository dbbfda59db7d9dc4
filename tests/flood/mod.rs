//! Claim: a hostile program on a replica's machine, which opens connections and sends nothing, drips, announces huge
//! messages, never reads, sends requests without end and breaks the protocol, on every listener at once, costs the
//! replica little memory and delays no approval. The replicas are processes of the real program. The attackers are
//! here.

mod approvals;
mod attacks;
mod between;
mod confined;
mod doors;
#[expect(clippy::module_inception, reason = "what the suite plays with")]
mod flood;
mod frames;
mod lies;
mod memory;
mod protocols;
mod somebody;
mod together;
mod unfinished;
mod unread;

use crate::cluster::cluster;
use crate::cluster::dialled;
use crate::cluster::plan;
use crate::cluster::workload;
use crate::tls::knock;
use crate::tls::pki;
