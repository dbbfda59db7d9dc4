//! Claim: on a machine with other users, only permitted callers can use a replica: sockets have their modes and their
//! owner and never replace another process's file, every call is authorized by its caller, no TCP port accepts calls
//! meant for sockets, the status port answers only requests meant for this replica, and every refusal is counted and
//! logged. The attacks are tried on processes of the real program, by processes of other users; the latter needs root.

mod callers;
mod described;
mod files;
mod ports;
mod sockets;
mod somebody;
mod status;

use crate::cluster::cluster;
use crate::hostile::calls;
use crate::tls::pki;
