//! Authenticates the caller as the replica named in the call, and checks whether the replica may make the call. With
//! `cluster.insecure` replicas show no certificate, and every caller is accepted.

use std::time::Duration;

use tokio::time::timeout;
use tonic::{Extensions, Status};

use super::node::Consensus;
use crate::net::limits::PeerReader;
use crate::net::tls::{Caller, HandshakeError};
use allclear_wire::pb::allclear::raft::v1::Vote;

/// How long a call waits for the answers of the other replicas about a node unknown to the log. The question goes on
/// beyond this time.
const VOUCHED_WITHIN: Duration = Duration::from_millis(250);

impl Consensus {
    /// Rejects a call in a replica's name with the certificate of another replica.
    pub fn authenticate(&self, extensions: &Extensions, replica: &str) -> Result<(), Status> {
        self.judge(extensions, |caller| caller.require_replica(replica))
    }

    /// Authenticates a message in the name of the node that votes, leads or sends its log. The log has to name the
    /// node. A node unknown to the log is accepted if the caller bears a member's name, as a new disk of this member
    /// does, or if the other replicas report the node as a member: this replica may lag behind.
    pub(crate) async fn authenticate_member(&self, extensions: &Extensions, vote: Option<&Vote>) -> Result<(), Status> {
        if self.options.tls.is_none() {
            return Ok(());
        }
        let Some(vote) = vote else { return Err(Status::invalid_argument("the vote is missing")) };
        let membership = self.membership();
        if let Some(member) = membership.get_node(&vote.node) {
            return self.authenticate(extensions, &member.replica);
        }
        self.authenticate_replica(extensions)?;
        let is_formed = membership.nodes().next().is_some();
        if !is_formed || self.bears_a_members_name(extensions) {
            return Ok(());
        }
        match timeout(VOUCHED_WITHIN, self.vouched_for(vote.node)).await {
            Ok(Some(replica)) => self.authenticate(extensions, &replica),
            Ok(None) => self.judge(extensions, |caller| Err(caller.is_no_member())),
            Err(_) => {
                let own = &self.identity.replica;
                Err(Status::unavailable(format!("{own} asks the others whether node {:x} is a member", vote.node)))
            }
        }
    }

    /// Authenticates a call without a replica's name. Only the certificate of a member, or of a configured replica that
    /// no operator removed, is accepted; the error distinguishes a former replica from a stranger.
    pub(crate) fn authenticate_replica(&self, extensions: &Extensions) -> Result<(), Status> {
        if self.may_speak(extensions) {
            return Ok(());
        }
        let membership = self.membership();
        let members = membership.nodes().map(|(_, member)| member.replica.as_str());
        let configured = self.options.replicas.iter().map(|(name, _)| name.as_str());
        self.judge(extensions, |caller| {
            caller.require_one_of(configured.chain(members))?;
            Err(caller.is_no_member())
        })
    }

    /// Whether the caller's certificate belongs to a member, or to a configured replica not removed by an operator.
    /// Unlike the other checks here, `may_speak` rejects no call.
    pub(super) fn may_speak(&self, extensions: &Extensions) -> bool {
        if self.options.tls.is_none() {
            return true;
        }
        let Some(caller) = extensions.get::<Caller>() else { return false };
        let configured: Vec<&str> =
            self.options.replicas.iter().map(|(name, _)| name.as_str()).filter(|name| caller.bears(name)).collect();
        let is_configured = !configured.is_empty() && !configured.iter().any(|name| self.excludes(name));
        is_configured || self.bears_a_members_name(extensions)
    }

    /// Authenticates a call without a replica's name for which only members have a reason.
    pub(crate) fn authenticate_any_member(&self, extensions: &Extensions) -> Result<(), Status> {
        self.authenticate_replica(extensions)?;
        if self.options.tls.is_none() || self.bears_a_members_name(extensions) {
            return Ok(());
        }
        self.judge(extensions, |caller| Err(caller.is_no_member()))
    }

    fn bears_a_members_name(&self, extensions: &Extensions) -> bool {
        let membership = self.membership();
        extensions
            .get::<Caller>()
            .is_some_and(|caller| membership.nodes().any(|(_, member)| caller.bears(&member.replica)))
    }

    /// True if an operator removed the replica, and the replica was not added since.
    pub(super) fn excludes(&self, replica: &str) -> bool {
        self.state_machine.read().is_ok_and(|state_machine| state_machine.excludes(replica))
    }

    fn judge(
        &self,
        extensions: &Extensions,
        judge: impl FnOnce(&Caller) -> Result<(), HandshakeError>,
    ) -> Result<(), Status> {
        if self.options.tls.is_none() {
            return Ok(());
        }
        let own = &self.identity.replica;
        match extensions.get::<Caller>() {
            Some(caller) => judge(caller).map_err(|why| {
                slow_down(extensions);
                Status::permission_denied(format!("{own} refuses the caller: {why}"))
            }),
            None => Err(Status::permission_denied(format!("{own} cannot identify the caller"))),
        }
    }
}

/// Slows down a caller rejected for its identity. The caller may call again, but at a limited rate.
pub(super) fn slow_down(extensions: &Extensions) {
    if let Some(reader) = extensions.get::<PeerReader>() {
        reader.record_refusal();
    }
}
