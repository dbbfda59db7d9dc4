//! Whether whoever calls is the replica that it says it is. With `cluster.insecure`, where replicas show no
//! certificates, every caller is believed.

use tonic::{Extensions, Status};

use super::node::Consensus;
use crate::tls::{Caller, Refusal};
use crate::wire::pb::allclear::raft::v1::Vote;

impl Consensus {
    /// Refuses a call in a replica's name by whoever shows another one's certificate.
    pub fn is_from(&self, extensions: &Extensions, replica: &str) -> Result<(), Status> {
        self.judge(extensions, |caller| caller.is(replica))
    }

    /// Of a call in the name of the node that votes or leads. One that the log does not know has to be configured here,
    /// at least: it may have a new disk.
    pub(crate) fn is_from_node(&self, extensions: &Extensions, vote: Option<&Vote>) -> Result<(), Status> {
        let known = self.with_metrics(|metrics| Some(metrics.membership_config.get_node(&vote?.node)?.replica.clone()));
        match known {
            Some(replica) => self.is_from(extensions, &replica),
            None => self.is_from_replica(extensions),
        }
    }

    /// Of a call in nobody's name: from anybody whom the configuration or the log names.
    pub(crate) fn is_from_replica(&self, extensions: &Extensions) -> Result<(), Status> {
        self.judge(extensions, |caller| {
            let membership = self.membership();
            let configured = self.options.replicas.iter().map(|(name, _)| name.as_str());
            caller.is_one_of(configured.chain(membership.nodes().map(|(_, member)| member.replica.as_str())))
        })
    }

    fn judge(&self, extensions: &Extensions, judge: impl FnOnce(&Caller) -> Result<(), Refusal>) -> Result<(), Status> {
        if self.options.tls.is_none() {
            return Ok(());
        }
        let own = &self.identity.replica;
        match extensions.get::<Caller>() {
            Some(caller) => {
                judge(caller).map_err(|why| Status::permission_denied(format!("{own} refuses whoever calls: {why}")))
            }
            None => Err(Status::permission_denied(format!("{own} does not know who calls"))),
        }
    }
}
