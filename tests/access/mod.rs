//! Claim: on a machine that others use too, a replica is asked by those who may and by nobody else: sockets have their
//! modes and their owner and take nobody's place, every call is judged by who makes it, no port takes what is for
//! sockets, the status port answers only those who mean it, and whoever is refused is counted and told of. The attacks
//! are tried on processes of the real program, by processes of other users; the latter needs root.

mod callers;
mod files;
mod ports;
mod sockets;
mod somebody;
mod status;

use crate::cluster::cluster;
use crate::hostile::calls;
use crate::tls::pki;
