//! The other replicas: where they listen, and one shared connection to each, made when it is first needed.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tonic::transport::{Channel, Endpoint};

use super::failure::OpenError;
use super::means::Means;

const CONNECT_WITHIN: Duration = Duration::from_millis(500);
pub(super) const KEEPALIVE_EVERY: Duration = Duration::from_secs(1);
pub(super) const KEEPALIVE_WITHIN: Duration = Duration::from_secs(2);

/// Calls that fail in a row before a replica counts as lost; one alone is noise.
const LOST_AFTER: u32 = 3;

/// One channel per replica name.
#[derive(Debug)]
pub(crate) struct Peers {
    means: Means,
    configured: BTreeMap<String, Channel>,
    /// Members that this replica's configuration does not name, reached where the log says: one address per name.
    others: Mutex<BTreeMap<String, (String, Channel)>>,
    /// Failed calls in a row, by replica.
    unanswered: Mutex<BTreeMap<String, u32>>,
}

impl Peers {
    pub(crate) fn new(replicas: &[(String, String)], means: Means) -> Result<Self, OpenError> {
        let connect = |(name, address): &(String, String)| {
            let channel = dial(address, means).map_err(|error| {
                OpenError::Options(format!("the address {address:?} of replica {name:?} is not host:port ({error})"))
            })?;
            Ok((name.clone(), channel))
        };
        let configured = replicas.iter().map(connect).collect::<Result<_, OpenError>>()?;
        Ok(Self { means, configured, others: Mutex::default(), unanswered: Mutex::default() })
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
        let channel = self.dial(address)?;
        others.insert(name.to_owned(), (address.to_owned(), channel.clone()));
        Ok(channel)
    }

    /// A connection that nobody shares.
    pub(crate) fn dial(&self, address: &str) -> Result<Channel, tonic::transport::Error> {
        dial(address, self.means)
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

fn dial(address: &str, means: Means) -> Result<Channel, tonic::transport::Error> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?
        .connect_timeout(CONNECT_WITHIN)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE_EVERY)
        .keep_alive_timeout(KEEPALIVE_WITHIN)
        .keep_alive_while_idle(true);
    Ok((means.dial)(&endpoint))
}
