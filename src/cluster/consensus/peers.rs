//! The other replicas: the address of each, and one shared connection to each, opened at first use.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use super::environment::Environment;
use super::failure::OpenError;
use super::options::Options;
use crate::net::dial::DialTarget;
use crate::net::tls::{self, Credentials};

/// The kernel detects the loss of the other machine. The keepalive detects a program that hangs there, and covers
/// proxies, where the proxy's kernel answers for the machine.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(2);
const KEEPALIVE_WITHIN: Duration = Duration::from_secs(2);

/// Failed calls in a row before a replica counts as lost; a single failure is noise.
const LOST_AFTER: u32 = 3;
/// How often the connection is opened anew when a replica's name led to another replica.
const LOOKED_FOR_EVERY: Duration = Duration::from_secs(1);

/// One channel per replica name.
pub(crate) struct Peers {
    environment: Environment,
    tls: Option<Arc<Credentials>>,
    /// The configured replicas; other members are reached at their address in the log.
    configured: BTreeSet<String>,
    roads: Mutex<BTreeMap<String, PeerRoute>>,
}

/// The connection to a replica at one address.
struct PeerRoute {
    address: String,
    channel: Channel,
    way: Arc<DialTarget>,
    since: Instant,
    /// Failed calls in a row.
    unanswered: u32,
}

impl Peers {
    pub(crate) fn new(options: &Options) -> Result<Self, OpenError> {
        let (environment, tls) = (options.environment, options.tls.clone());
        let mut peers = Self { environment, tls, configured: BTreeSet::new(), roads: Mutex::default() };
        for (name, address) in &options.replicas {
            peers.channel_or_dial(name, address).map_err(|error| {
                OpenError::Options(format!("the address {address:?} of replica {name:?} is not host:port ({error})"))
            })?;
            peers.configured.insert(name.clone());
        }
        Ok(peers)
    }

    pub(crate) fn channel(&self, name: &str) -> Option<Channel> {
        let is_configured = self.configured.contains(name);
        self.roads().get(name).filter(|_| is_configured).map(|road| road.channel.clone())
    }

    /// The configured address has precedence; the log's address is for replicas outside the configuration.
    pub(crate) fn channel_or_dial(&self, name: &str, address: &str) -> Result<Channel, tonic::transport::Error> {
        let mut roads = self.roads();
        let is_right = |road: &&PeerRoute| road.address == address || self.configured.contains(name);
        if let Some(road) = roads.get(name).filter(is_right) {
            return Ok(road.channel.clone());
        }
        let way = DialTarget::to(address);
        let channel = self.open(name, address, &way)?;
        let (address, since) = (address.to_owned(), Instant::now());
        let road = PeerRoute { address, channel: channel.clone(), way, since, unanswered: 0 };
        roads.insert(name.to_owned(), road);
        Ok(channel)
    }

    /// Resolves the addresses of the other replicas before the first connection: a replica elected while DNS does not
    /// answer needs the addresses.
    pub(super) fn keep_connected(&self) {
        self.roads().values().for_each(|road| road.way.keep_resolved());
    }

    /// Opens an unshared connection.
    pub(crate) fn dial(&self, name: &str, address: &str) -> Result<Channel, tonic::transport::Error> {
        self.open(name, address, &DialTarget::to(address))
    }

    /// With certificates the connection reaches this replica or fails.
    fn open(&self, name: &str, address: &str, way: &Arc<DialTarget>) -> Result<Channel, tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEPALIVE_EVERY)
            .keep_alive_timeout(KEEPALIVE_WITHIN)
            .keep_alive_while_idle(true);
        Ok(match &self.tls {
            Some(credentials) => tls::dial(&endpoint, credentials, name, way),
            None => (self.environment.dial)(&endpoint, way),
        })
    }

    /// The connection to the last known address of a replica; `address` is only for a replica without a known address.
    pub(crate) fn latest(&self, name: &str, address: &str) -> Result<Channel, tonic::transport::Error> {
        let known = self.roads().get(name).map(|road| road.address.clone());
        self.channel_or_dial(name, known.as_deref().unwrap_or(address))
    }

    /// Records a rejected call, perhaps meant for another replica.
    pub(crate) fn note_refusal(&self, name: &str, status: &Status) {
        if status.code() == Code::FailedPrecondition {
            self.mark_wrong_peer(name);
        }
    }

    /// Records the answer of another replica at this address. A host name may have moved, which a working connection
    /// would never detect: the next call opens a new connection.
    pub(crate) fn mark_wrong_peer(&self, name: &str) {
        let mut roads = self.roads();
        let is_due = |road: &&mut PeerRoute| road.way.may_change() && road.since.elapsed() >= LOOKED_FOR_EVERY;
        if let Some(road) = roads.get_mut(name).filter(is_due)
            && let Ok(channel) = self.open(name, &road.address, &road.way)
        {
            (road.channel, road.since) = (channel, Instant::now());
        }
    }

    /// The reason why the last attempt to connect failed.
    pub(crate) fn last_dial_error(&self, name: &str) -> Option<String> {
        self.roads().get(name)?.way.last_error()
    }

    fn roads(&self) -> MutexGuard<'_, BTreeMap<String, PeerRoute>> {
        self.roads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs one line when a replica is lost and one when the replica is back, instead of one per failed call.
    pub(crate) fn note(&self, replica: &str, failure: Option<&str>) {
        let mut roads = self.roads();
        let Some(PeerRoute { unanswered, .. }) = roads.get_mut(replica) else { return };
        let before = std::mem::replace(unanswered, if failure.is_none() { 0 } else { unanswered.saturating_add(1) });
        match failure {
            None if before >= LOST_AFTER => tracing::info!(replica, "replica reachable again"),
            Some(reason) if *unanswered == LOST_AFTER => tracing::warn!(replica, reason, "replica unreachable"),
            None | Some(_) => {}
        }
    }
}

/// The reason why a call failed: the message of the other side, or the connection error.
pub(super) fn said(status: &Status) -> String {
    status.source().map_or_else(|| status.message().to_owned(), tls::cause)
}
