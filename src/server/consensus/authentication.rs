//! Checks that a caller is the replica that its call names, and that this replica may make the call. With
//! `cluster.insecure` replicas show no certificate, and every caller is believed.

use std::time::Duration;

use tokio::time::timeout;
use tonic::{Extensions, Status};

use super::node::Consensus;
use crate::net::limits::PeerReader;
use crate::net::tls::{Caller, HandshakeError};
use allclear_wire::pb::allclear::raft::v1::Vote;

/// For so long a call waits for what the others say of a node that the log does not know. They are asked beyond it.
const VOUCHED_WITHIN: Duration = Duration::from_millis(250);

impl Consensus {
    /// Refuses a call in a replica's name by whoever shows another one's certificate.
    pub fn authenticate(&self, extensions: &Extensions, replica: &str) -> Result<(), Status> {
        self.judge(extensions, |caller| caller.require_replica(replica))
    }

    /// Of a message in the name of the node that votes, leads or sends its log. The log has to name it. A node that the
    /// log does not name yet is heard where it bears a member's name, for then it is a new disk of that member, or where
    /// the others say that it is a member by now: this replica may lag behind.
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

    /// Of a call in nobody's name: from anybody whom the configuration or the log names.
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

    /// Whether the caller's certificate is that of a member, or of a configured replica that no operator removed. Unlike
    /// the others here, this refuses nobody.
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

    /// Of a call in nobody's name that only members have a reason for.
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

    /// An operator removed it, and nobody has added it since.
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
                Status::permission_denied(format!("{own} refuses whoever calls: {why}"))
            }),
            None => Err(Status::permission_denied(format!("{own} does not know who calls"))),
        }
    }
}

/// Whoever calls is refused for who it is. It may call again, and not as often as it likes.
pub(super) fn slow_down(extensions: &Extensions) {
    if let Some(reader) = extensions.get::<PeerReader>() {
        reader.record_refusal();
    }
}
