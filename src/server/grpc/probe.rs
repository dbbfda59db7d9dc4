//! Asks a replica's address for its name and its clock, for `doctor`.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tonic::Status;
use tonic::transport::Endpoint;

use crate::net::dial::{self, DialTarget};
use crate::net::tls::{self, Credentials};
use crate::replica::clock;
use allclear_wire::pb::allclear::cluster::v1 as wire;
use allclear_wire::pb::allclear::cluster::v1::consensus_client::ConsensusClient;
use allclear_wire::pb::allclear::cluster::v1::contact_client::ContactClient;

/// The identity of a prober: this replica of this cluster.
pub struct Prober<'a> {
    pub cluster: &'a str,
    pub replica: &'a str,
    /// `None`: plain text.
    pub tls: Option<&'a Arc<Credentials>>,
}

/// The replica that answered.
#[derive(Debug)]
pub struct ProbeResult {
    pub replica: String,
    /// The replicas of its configuration, in their order.
    pub replicas: Vec<String>,
    /// The milliseconds by which the replica's wall clock is ahead of this machine's, and the round trip; absent when
    /// the replica does not know the prober.
    pub clock: Option<(i64, Duration)>,
}

/// Asks the replica `whom` at this address; changes nothing there.
///
/// # Errors
/// The reason why no replica of this cluster answered.
pub async fn visit(visitor: &Prober<'_>, whom: &str, address: &str, within: Duration) -> Result<ProbeResult, String> {
    let Prober { cluster, replica, tls: credentials } = *visitor;
    let late = |_| format!("the replica did not answer within {within:?}");
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|error| format!("the address is not usable: {error}"))?;
    let way = DialTarget::to(address);
    let channel = match credentials {
        Some(credentials) => tls::dial(&endpoint, credentials, whom, &way),
        None => dial::dial(&endpoint, &way),
    };
    let greeting = wire::Greeting { cluster: cluster.into(), replica: replica.into(), ..wire::Greeting::default() };
    let greet = wire::GreetRequest { greeting: Some(greeting) };
    let mut consensus = ConsensusClient::new(channel.clone());
    let greeted = timeout(within, consensus.greet(greet)).await.map_err(late)?;
    let unmet = |status| way.last_error().unwrap_or_else(|| said(&status));
    let theirs = greeted.map_err(unmet)?.into_inner().greeting.unwrap_or_default();
    if theirs.cluster != cluster {
        return Err(format!("replica {} of cluster {} answers at this address", theirs.replica, theirs.cluster));
    }
    let ask = wire::AskRequest { cluster: cluster.into(), replica: replica.into() };
    let (sent, mut contact) = (clock::monotonic(), ContactClient::new(channel));
    let asked = timeout(within, contact.ask(ask)).await;
    let round_trip = clock::monotonic().since(sent);
    let theirs_then = asked.ok().and_then(Result::ok).and_then(|answer| answer.into_inner().wall_ms);
    let ahead = theirs_then.map(|wall| wall.saturating_sub(clock::now().minus(round_trip / 2).0));
    Ok(ProbeResult {
        replica: theirs.replica,
        replicas: theirs.replicas,
        clock: ahead.map(|ahead| (ahead, round_trip)),
    })
}

/// The text of a status; a server other than a replica may send none.
fn said(status: &Status) -> String {
    if status.message().is_empty() { status.code().to_string() } else { status.message().into() }
}
