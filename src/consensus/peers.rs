//! The other replicas: where they listen, and one shared connection to each, made when it is first needed.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use super::failure::OpenError;
use super::means::Means;
use super::options::Options;
use crate::tls::{self, Credentials};

const CONNECT_WITHIN: Duration = Duration::from_millis(500);
pub(super) const KEEPALIVE_EVERY: Duration = Duration::from_secs(1);
pub(super) const KEEPALIVE_WITHIN: Duration = Duration::from_secs(2);

/// Calls that fail in a row before a replica counts as lost; one alone is noise.
const LOST_AFTER: u32 = 3;

/// One channel per replica name.
#[derive(Debug)]
pub(crate) struct Peers {
    means: Means,
    tls: Option<Arc<Credentials>>,
    configured: BTreeMap<String, Channel>,
    /// Members that this replica's configuration does not name, reached where the log says: one address per name.
    others: Mutex<BTreeMap<String, (String, Channel)>>,
    /// Failed calls in a row, by replica.
    unanswered: Mutex<BTreeMap<String, u32>>,
}

impl Peers {
    pub(crate) fn new(options: &Options) -> Result<Self, OpenError> {
        let (means, tls) = (options.means, options.tls.clone());
        let (others, unanswered) = (Mutex::default(), Mutex::default());
        let mut peers = Self { means, tls, configured: BTreeMap::new(), others, unanswered };
        for (name, address) in &options.replicas {
            let channel = peers.dial(name, address).map_err(|error| {
                OpenError::Options(format!("the address {address:?} of replica {name:?} is not host:port ({error})"))
            })?;
            peers.configured.insert(name.clone(), channel);
        }
        Ok(peers)
    }

    pub(crate) fn channel(&self, name: &str) -> Option<Channel> {
        self.configured.get(name).cloned()
    }

    /// The configuration decides where a replica listens; the log's address is for those it does not name.
    pub(crate) fn channel_or_dial(&self, name: &str, address: &str) -> Result<Channel, tonic::transport::Error> {
        if let Some(channel) = self.channel(name) {
            return Ok(channel);
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, channel)) = others.get(name).filter(|(known, _)| known == address) {
            return Ok(channel.clone());
        }
        let channel = self.dial(name, address)?;
        others.insert(name.to_owned(), (address.to_owned(), channel.clone()));
        Ok(channel)
    }

    /// A connection that nobody shares. With certificates it leads to this replica or to nobody.
    pub(crate) fn dial(&self, name: &str, address: &str) -> Result<Channel, tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?
            .connect_timeout(CONNECT_WITHIN)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEPALIVE_EVERY)
            .keep_alive_timeout(KEEPALIVE_WITHIN)
            .keep_alive_while_idle(true);
        Ok(match &self.tls {
            Some(credentials) => tls::dial(&endpoint, credentials, name),
            None => (self.means.dial)(&endpoint),
        })
    }

    /// Where a replica was last said to be; this address is only for one that nobody has heard of yet.
    pub(crate) fn latest(&self, name: &str, address: &str) -> Result<Channel, tonic::transport::Error> {
        let known =
            self.others.lock().unwrap_or_else(PoisonError::into_inner).get(name).map(|(known, _)| known.clone());
        self.channel_or_dial(name, known.as_deref().unwrap_or(address))
    }

    /// One line when a replica is lost and one when it is back, instead of one per failed call.
    pub(crate) fn note(&self, replica: &str, failure: Option<&str>) {
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        let count = unanswered.entry(replica.to_owned()).or_default();
        let before = std::mem::replace(count, if failure.is_none() { 0 } else { count.saturating_add(1) });
        match failure {
            None if before >= LOST_AFTER => tracing::info!(replica, "takes part again"),
            Some(reason) if *count == LOST_AFTER => tracing::warn!(replica, reason, "does not take part"),
            None | Some(_) => {}
        }
    }
}

/// What a call failed of: what the other side said, or why it was not reached.
pub(super) fn said(status: &Status) -> String {
    status.source().map_or_else(|| status.message().to_owned(), tls::cause)
}
