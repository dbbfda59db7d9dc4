//! The gRPC service for other replicas beside the log: hello, proposals, linearizable reads.

use std::time::Duration;

use tokio::time::{Instant, timeout};
use tonic::{Request, Response, Status};

use super::codec::pb_membership;
use super::failure::RequestError;
use super::join_requests::contest_message;
use super::membership_request::CHANGE_WITHIN;
use super::node::Consensus;
use super::types::Membership;
use allclear_wire::pb::allclear::cluster::v1 as pb;
use pb::consensus_server::Consensus as Service;

/// Serves `allclear.cluster.v1`.
pub(crate) struct ClusterService(pub(crate) Consensus);

#[tonic::async_trait]
impl Service for ClusterService {
    async fn greet(&self, request: Request<pb::GreetRequest>) -> Result<Response<pb::GreetResponse>, Status> {
        let (_, extensions, request) = request.into_parts();
        let greeting = request.greeting.unwrap_or_default();
        let own = &self.0.identity;
        if greeting.cluster != own.cluster {
            return Err(Status::failed_precondition(format!(
                "{} belongs to cluster {}, {} to cluster {}",
                own.replica, own.cluster, greeting.replica, greeting.cluster
            )));
        }
        self.0.authenticate(&extensions, &greeting.replica)?;
        let membership = self.0.stored_membership().await.map_err(Status::unavailable)?;
        let refused = membership.as_ref().and_then(|membership| self.greeted_by(&greeting, membership));
        let membership = membership.as_ref().map(pb_membership);
        let leader = self.0.leader_heard().map(|(node, _)| node);
        Ok(Response::new(pb::GreetResponse { greeting: Some(self.0.greeting()), membership, leader, refused }))
    }

    async fn propose(&self, request: Request<pb::ProposeRequest>) -> Result<Response<pb::ProposeResponse>, Status> {
        use pb::propose_response::Outcome;
        let (_, extensions, request) = request.into_parts();
        self.0.admit(request.to.as_ref())?;
        self.0.authenticate(&extensions, &request.by)?;
        if !self.0.knows(&request.by) {
            return Err(Status::failed_precondition(format!("{} is not a member of this cluster", request.by)));
        }
        let deadline = self.deadline(request.within_ms);
        let outcome = match self.0.propose_here(&request.proposal, &request.by, deadline).await {
            Ok(verdict) => Outcome::Verdict(verdict),
            Err(error) => Outcome::Refused(error.into()),
        };
        Ok(Response::new(pb::ProposeResponse { outcome: Some(outcome) }))
    }

    async fn confirm(&self, request: Request<pb::ConfirmRequest>) -> Result<Response<pb::ConfirmResponse>, Status> {
        use pb::confirm_response::Outcome;
        let (_, extensions, request) = request.into_parts();
        self.0.admit(request.to.as_ref())?;
        self.0.authenticate_any_member(&extensions)?;
        let outcome = match self.0.read_index(self.deadline(request.within_ms)).await {
            Ok(index) => Outcome::Index(index),
            Err(error) => Outcome::Refused(error.into()),
        };
        Ok(Response::new(pb::ConfirmResponse { outcome: Some(outcome) }))
    }

    async fn change(&self, request: Request<pb::ChangeRequest>) -> Result<Response<pb::ChangeResponse>, Status> {
        use pb::change_response::Outcome;
        let (_, extensions, request) = request.into_parts();
        self.0.admit(request.to.as_ref())?;
        self.0.authenticate(&extensions, &request.by)?;
        let change = request.change.ok_or_else(|| Status::invalid_argument("the request is empty"))?;
        // Not by the certificate, which may belong to a removed replica that is still in the configuration.
        let is_member = self.0.knows(&request.by);
        if !is_member && self.0.options.tls.is_some() {
            let why = format!(
                "{} is not a member, and a certificate does not replace membership: use a member instead",
                request.by
            );
            return Ok(Response::new(pb::ChangeResponse {
                outcome: Some(Outcome::Refused(RequestError::Refused(why).into())),
            }));
        }
        // A replica that waits to become a member may ask for itself.
        let waits = matches!(&change, pb::change_request::Change::Add(add) if add.replica == request.by);
        if !is_member && !waits && self.0.peers.channel(&request.by).is_none() {
            return Err(Status::failed_precondition(format!("{} is not a member of this cluster", request.by)));
        }
        let within = Duration::from_millis(request.within_ms.into()).min(CHANGE_WITHIN);
        // Not given up either when the asking replica is gone.
        let node = self.0.clone();
        let (who, by) = (request.on_behalf_of, request.by);
        let changing = tokio::spawn(async move { node.change_for(&change, &who, &by).await });
        let late = || RequestError::Unknown("the change did not finish in time".into());
        let outcome = match timeout(within, changing).await {
            Ok(Ok(Ok(changed))) => Outcome::Changed(changed),
            Ok(Ok(Err(error))) => Outcome::Refused(error.into()),
            Ok(Err(_)) | Err(_) => Outcome::Refused(late().into()),
        };
        Ok(Response::new(pb::ChangeResponse { outcome: Some(outcome) }))
    }
}

impl ClusterService {
    /// Records nodes that want to join and members that stop. Returns the reason for not letting a node in, if known
    /// here.
    fn greeted_by(&self, greeting: &pb::Greeting, membership: &Membership) -> Option<String> {
        let pb::Greeting { replica, node, .. } = greeting;
        let (askers, now) = (&self.0.askers, Instant::now().into_std());
        if membership.get_node(node).is_some_and(|member| member.replica == *replica) {
            if greeting.signs_off {
                askers.signs_off(*node, now);
            }
            return None;
        }
        let is_known = self.0.knows(replica) || self.0.options.address_of(replica).is_some();
        // A caller that only probes a replica has no node.
        if !is_known || *node == 0 {
            return None;
        }
        if self.0.excludes(replica) {
            askers.record_removed(replica, now);
            return Some(format!(
                "{replica} was removed by an operator; add the replica again with `allclear member add {replica} \
                 ADDRESS` on another replica"
            ));
        }
        askers.record_hello(replica, *node, now);
        askers.nodes(now).get(replica).filter(|nodes| nodes.len() > 1).map(|nodes| contest_message(replica, nodes))
    }

    /// The deadline of the asking replica, within this replica's own limit.
    fn deadline(&self, within_ms: u32) -> Instant {
        let within = Duration::from_millis(within_ms.into());
        Instant::now() + within.min(self.0.options.timing.deadline)
    }
}
