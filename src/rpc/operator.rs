//! What operators ask of a replica over its socket.

use std::fmt::Display;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use futures_util::stream;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::server::UdsConnectInfo;
use tonic::{Request, Response, Status};

use super::drill;
use super::wishes::Asking;
use crate::machine::command::{Command, Verdict, bounded};
use crate::machine::id::{EventId, VmName};
use crate::replica::clock::from_rfc3339;
use crate::replica::here::Here;
use crate::replica::view::{Place, View};
use crate::wire::pb::allclear::operator::v1 as shown;
use crate::wire::pb::allclear::operator::v1::operator_server::{self, OperatorServer};

/// The longest is a drill's, which names up to 1,000 VMs.
const MAX_MESSAGE_BYTES: usize = 512 << 10;
/// No name of a VM is longer.
const MAX_NAME_BYTES: usize = 255;

struct Answers {
    view: View,
    here: Arc<Here>,
    stop: CancellationToken,
}

/// The operator's service.
pub fn operator_routes(view: View, here: Arc<Here>, stop: CancellationToken) -> Routes {
    let server = OperatorServer::new(Answers { view, here, stop });
    Routes::new(server.max_decoding_message_size(MAX_MESSAGE_BYTES))
}

impl Answers {
    /// Who asks, as the logs name them: the peer of the socket.
    fn who<T>(&self, request: &Request<T>) -> String {
        let peer = request.extensions().get::<UdsConnectInfo>().and_then(|connected| connected.peer_cred);
        let uid = peer.map_or_else(|| "unknown uid".into(), |peer| format!("uid {}", peer.uid()));
        format!("{uid} on {}", self.here.name)
    }

    fn asking<T>(&self, request: &Request<T>) -> Asking<'_> {
        Asking { here: &self.here, view: &self.view, who: self.who(request) }
    }
}

/// A refusal changed nothing; anything else may have.
pub(super) fn refused(error: &impl Display, is_refusal: bool) -> Status {
    if is_refusal { Status::failed_precondition(error.to_string()) } else { Status::aborted(error.to_string()) }
}

/// A name as the configuration could hold it.
fn name(given: String) -> Result<String, Status> {
    let is_name = (1..=MAX_NAME_BYTES).contains(&given.len()) && given.chars().all(|letter| letter.is_ascii_graphic());
    if is_name { Ok(given) } else { Err(Status::failed_precondition(format!("{given:?} is no replica's name"))) }
}

#[tonic::async_trait]
impl operator_server::Operator for Answers {
    async fn get_status(&self, _: Request<shown::GetStatusRequest>) -> Result<Response<shown::Status>, Status> {
        Ok(Response::new(self.view.status()))
    }

    async fn list_events(
        &self,
        request: Request<shown::ListEventsRequest>,
    ) -> Result<Response<shown::EventList>, Status> {
        let request = request.into_inner();
        if !request.all {
            return Ok(Response::new(self.view.events()));
        }
        let place = Place::read(&request.after).ok_or_else(|| Status::failed_precondition("no page ended there"))?;
        let since = request.since.as_deref().map(|since| {
            from_rfc3339(since).ok_or_else(|| Status::failed_precondition(format!("{since:?} is no time of RFC 3339")))
        });
        Ok(Response::new(self.view.page(&place, since.transpose()?)))
    }

    async fn get_event(&self, request: Request<shown::GetEventRequest>) -> Result<Response<shown::Event>, Status> {
        let id = request.into_inner().id;
        let unknown = || Status::not_found(format!("no event {id:?} is known here; `allclear events` lists them"));
        self.view.event(&id).map(Response::new).ok_or_else(unknown)
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<shown::Status, Status>> + Send>>;

    async fn watch(&self, _: Request<shown::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let (view, stop) = (self.view.clone(), self.stop.clone());
        let changes = view.changes();
        let first = Some((view.clone(), changes, stop, true));
        let statuses = stream::unfold(first, |watching| async {
            let (view, mut changes, stop, is_first) = watching?;
            if !is_first {
                let goes_on = stop.run_until_cancelled(changes.next()).await;
                if goes_on != Some(true) {
                    return Some((Err(Status::unavailable("this replica stops")), None));
                }
            }
            Some((Ok(view.status()), Some((view, changes, stop, false))))
        });
        Ok(Response::new(Box::pin(statuses)))
    }

    async fn list_members(&self, _: Request<shown::ListMembersRequest>) -> Result<Response<shown::MemberList>, Status> {
        let seats = self.here.consensus.roster().await.into_iter();
        let members = seats.map(|seat| shown::Member {
            name: seat.replica,
            address: seat.address,
            voter: seat.voter,
            leader: seat.leads,
            reachable: seat.unreachable.is_none(),
            node: format!("{:x}", seat.node),
            unreachable_because: seat.unreachable,
        });
        Ok(Response::new(shown::MemberList { members: members.collect() }))
    }

    async fn add_member(
        &self,
        request: Request<shown::AddMemberRequest>,
    ) -> Result<Response<shown::AddMemberResponse>, Status> {
        let asking = self.asking(&request);
        let asked = self.here.consensus.on_behalf_of(asking.who.clone());
        let shown::AddMemberRequest { name: given, address, reason } = request.into_inner();
        let (replica, shown_address) = (name(given)?, bounded(&address));
        asking.note(format!("{replica} at {shown_address:?} to be added to the members"), reason).await?;
        let added = asked.add_member(&replica, &address).await;
        let voter = added.map_err(|error| refused(&error, error.is_refusal()))?;
        Ok(Response::new(shown::AddMemberResponse { voter }))
    }

    async fn remove_member(
        &self,
        request: Request<shown::RemoveMemberRequest>,
    ) -> Result<Response<shown::RemoveMemberResponse>, Status> {
        let asking = self.asking(&request);
        let asked = self.here.consensus.on_behalf_of(asking.who.clone());
        let shown::RemoveMemberRequest { name: given, gone, reason } = request.into_inner();
        let (replica, members) = (name(given)?, self.here.consensus.members());
        let for_good = if gone { ", gone for good" } else { "" };
        asking.note(format!("{replica} to be removed from the members{for_good}"), reason).await?;
        if members.voters.contains(&replica) || members.learners.contains(&replica) || !gone {
            let removed = asked.remove_member(&replica).await;
            removed.map_err(|error| refused(&error, error.is_refusal()))?;
        }
        if gone {
            let absolved = self.here.propose(&Command::Absolve { replica: VmName::new(&replica) }).await;
            let unknown = format!("{replica} is no member, and nobody waits for its account");
            match absolved {
                Ok(Verdict::Applied) => {}
                Ok(Verdict::Ignored(_)) => return Err(Status::failed_precondition(unknown)),
                Err(error) => return Err(Status::aborted(format!("it may still be suspect: {error}; try again"))),
            }
        }
        Ok(Response::new(shown::RemoveMemberResponse {}))
    }

    async fn transfer_leader(
        &self,
        request: Request<shown::TransferLeaderRequest>,
    ) -> Result<Response<shown::TransferLeaderResponse>, Status> {
        let asking = self.asking(&request);
        let asked = self.here.consensus.on_behalf_of(asking.who.clone());
        let shown::TransferLeaderRequest { name: given, reason } = request.into_inner();
        let to = given.map(name).transpose()?;
        let heir = to.as_deref().unwrap_or("whoever is up to date");
        asking.note(format!("leadership to go to {heir}"), reason).await?;
        let transferred = asked.transfer_leadership(to.as_deref()).await;
        let leader = transferred.map_err(|error| refused(&error, error.is_refusal()))?;
        Ok(Response::new(shown::TransferLeaderResponse { leader }))
    }

    async fn drill(&self, request: Request<shown::DrillRequest>) -> Result<Response<shown::DrillResponse>, Status> {
        let who = self.who(&request);
        let id = drill::begin(&self.here, request.into_inner(), who).await?;
        Ok(Response::new(shown::DrillResponse { id: id.to_string() }))
    }

    async fn end_drill(
        &self,
        request: Request<shown::EndDrillRequest>,
    ) -> Result<Response<shown::EndDrillResponse>, Status> {
        drill::end(&self.here, EventId::new(&request.into_inner().id)).await?;
        Ok(Response::new(shown::EndDrillResponse {}))
    }

    async fn hold(&self, request: Request<shown::HoldRequest>) -> Result<Response<shown::HoldResponse>, Status> {
        self.asking(&request).hold(request.into_inner()).await.map(Response::new)
    }

    async fn release(
        &self,
        request: Request<shown::ReleaseRequest>,
    ) -> Result<Response<shown::ReleaseResponse>, Status> {
        self.asking(&request).release(request.into_inner()).await.map(Response::new)
    }

    async fn pause(&self, request: Request<shown::PauseRequest>) -> Result<Response<shown::PauseResponse>, Status> {
        self.asking(&request).pause(request.into_inner()).await.map(Response::new)
    }

    async fn resume(&self, request: Request<shown::ResumeRequest>) -> Result<Response<shown::ResumeResponse>, Status> {
        self.asking(&request).resume(request.into_inner()).await.map(Response::new)
    }

    async fn approve(
        &self,
        request: Request<shown::ApproveRequest>,
    ) -> Result<Response<shown::ApproveResponse>, Status> {
        self.asking(&request).approve(request.into_inner()).await.map(Response::new)
    }

    async fn skip(&self, request: Request<shown::SkipRequest>) -> Result<Response<shown::SkipResponse>, Status> {
        self.asking(&request).skip(request.into_inner()).await.map(Response::new)
    }
}
