//! The operator service.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _, stream};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use super::drill;
use super::names::{self, given_name, member, name, time};
use super::operator_actions::{OperatorCall, reason};
use super::refusal::{not_selected, refused};
use super::uid_policy::caller;
use super::workload::removal;
use crate::replica::SharedParts;
use crate::replica::cluster::ClusterHandle;
use crate::replica::hook_executor::HookExecutor;
use crate::replica::input_source::InputSource;
use crate::replica::isolated_requests::IsolatedRequests;
use crate::replica::view::{PageStart, View};
use allclear_core::model::command::{Command, ReadmitReplica, bounded};
use allclear_core::model::id::VmName;
use allclear_core::model::operator::OperatorRequest;
use allclear_core::model::state::State;
use allclear_wire::pb::allclear::operator::v1 as shown;
use allclear_wire::pb::allclear::operator::v1::operator_server::{self, OperatorServer};

/// The longest message is a drill's, with up to 1,000 VMs.
const MAX_MESSAGE_BYTES: usize = 512 << 10;

struct OperatorService {
    view: View,
    cluster: Arc<ClusterHandle>,
    inputs: Arc<InputSource>,
    isolated_requests: Arc<IsolatedRequests>,
    hooks: Arc<HookExecutor>,
    stop: CancellationToken,
}

/// The operator service.
pub fn operator_routes(view: View, shared: &SharedParts, hooks: Arc<HookExecutor>, stop: CancellationToken) -> Routes {
    let SharedParts { inputs, isolated_requests, .. } = shared.clone();
    let cluster = inputs.cluster.clone();
    let server = OperatorServer::new(OperatorService { view, cluster, inputs, isolated_requests, hooks, stop });
    Routes::new(server.max_decoding_message_size(MAX_MESSAGE_BYTES))
}

impl OperatorService {
    /// The call with the caller's name in logs: the name that the caller gives, and the user of the peer of the socket.
    fn asked<T>(&self, request: Request<T>) -> (OperatorCall<'_>, T) {
        let uid = caller(request.extensions()).map_or_else(|| "unknown uid".into(), |(uid, _)| format!("uid {uid}"));
        let who = given_name(request.metadata()).map_or_else(|| uid.clone(), |name| format!("{name} ({uid})"));
        let asking = OperatorCall {
            cluster: &self.cluster,
            inputs: &self.inputs,
            isolated_requests: &self.isolated_requests,
            view: &self.view,
            who: format!("{who} on {}", self.cluster.node.name),
        };
        (asking, request.into_inner())
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl operator_server::Operator for OperatorService {
    async fn get_status(&self, _: Request<shown::GetStatusRequest>) -> Answer<shown::Status> {
        Ok(Response::new(self.view.status()))
    }

    async fn list_events(&self, request: Request<shown::ListEventsRequest>) -> Answer<shown::EventList> {
        let request = request.into_inner();
        if !request.all {
            return Ok(Response::new(self.view.events()));
        }
        let place = PageStart::read(&request.after).ok_or_else(|| {
            Status::invalid_argument("after: the start of the page is unknown; give `next` of the page before")
        })?;
        let since = request.since.as_deref().map(|since| time("since", since));
        Ok(Response::new(self.view.page(&place, since.transpose()?)))
    }

    async fn get_event(&self, request: Request<shown::GetEventRequest>) -> Answer<shown::Event> {
        let id = request.into_inner().id;
        self.view.select_event(&id).map(Response::new).map_err(|error| not_selected(&error))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<shown::Status, Status>> + Send>>;

    async fn watch(&self, _: Request<shown::WatchRequest>) -> Answer<Self::WatchStream> {
        let (changes, view) = (self.view.changes(), self.view.clone());
        let now = stream::iter([Ok(view.status())]);
        let later = stream::unfold(changes, |mut changes| async { changes.next().await.then_some(((), changes)) });
        let statuses = now.chain(later.map(move |()| Ok(view.status())));
        let stops = stream::once(async { Err(Status::unavailable("this replica is stopping")) });
        Ok(Response::new(Box::pin(statuses.take_until(self.stop.clone().cancelled_owned()).chain(stops))))
    }

    async fn list_members(&self, _: Request<shown::ListMembersRequest>) -> Answer<shown::MemberList> {
        let seats = self.cluster.consensus.roster().await.into_iter();
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

    async fn add_member(&self, request: Request<shown::AddMemberRequest>) -> Answer<shown::AddMemberResponse> {
        let (asking, shown::AddMemberRequest { name: given, address, reason }) = self.asked(request);
        let asked = self.cluster.consensus.on_behalf_of(asking.who.clone());
        let replica = asking.spelled(&name(given)?);
        names::address(&address)?;
        asking.record(format!("addition of {replica} at {:?} to the members", bounded(&address)), reason).await?;
        let added = asked.add_member(&replica, &address).await;
        // Also where the addition goes on after an error: a member that counts as removed gets no vote.
        if added.as_ref().err().is_none_or(|error| !error.is_refusal()) {
            asking.commit(Command::ReadmitReplica(ReadmitReplica { replica: VmName::new(&replica) })).await?;
        }
        let voter = added.map_err(|error| refused(&error, error.is_refusal()))?;
        Ok(Response::new(shown::AddMemberResponse { voter }))
    }

    async fn remove_member(&self, request: Request<shown::RemoveMemberRequest>) -> Answer<shown::RemoveMemberResponse> {
        let (asking, request) = self.asked(request);
        asking.remove_member(request).await?;
        Ok(Response::new(shown::RemoveMemberResponse {}))
    }

    async fn transfer_leader(
        &self,
        request: Request<shown::TransferLeaderRequest>,
    ) -> Answer<shown::TransferLeaderResponse> {
        let (asking, shown::TransferLeaderRequest { name: given, reason }) = self.asked(request);
        let asked = self.cluster.consensus.on_behalf_of(asking.who.clone());
        let to = given.map(name).transpose()?;
        let heir = to.as_deref().unwrap_or("an up-to-date voter");
        let votes = |to: &String| self.cluster.consensus.members().voters.contains(&asking.spelled(to));
        let unknown = format!("{heir} is not a voter of this cluster");
        asking.check_known(|| to.as_ref().is_none_or(votes), &unknown).await?;
        let to = to.map(|to| asking.spelled(&to));
        let heir = to.as_deref().unwrap_or("an up-to-date voter");
        asking.record(format!("transfer of leadership to {heir}"), reason).await?;
        let transferred = asked.transfer_leadership(to.as_deref()).await;
        let leader = transferred.map_err(|error| refused(&error, error.is_refusal()))?;
        Ok(Response::new(shown::TransferLeaderResponse { leader }))
    }

    async fn drill(&self, request: Request<shown::DrillRequest>) -> Answer<shown::DrillResponse> {
        let (asking, request) = self.asked(request);
        let id = drill::begin(&self.cluster, request, asking.who).await?;
        Ok(Response::new(shown::DrillResponse { id: id.to_string() }))
    }

    async fn end_drill(&self, request: Request<shown::EndDrillRequest>) -> Answer<shown::EndDrillResponse> {
        let (asking, request) = self.asked(request);
        drill::end(&self.cluster, asking.event(&request.id)?).await?;
        Ok(Response::new(shown::EndDrillResponse {}))
    }

    async fn hold(&self, request: Request<shown::HoldRequest>) -> Answer<shown::HoldResponse> {
        let (asking, request) = self.asked(request);
        let (event, until) = (asking.event(&request.event)?, asking.end(request.until).await?);
        asking
            .ask(
                OperatorRequest::Hold { event: event.clone(), until, no_hooks: request.no_hooks },
                reason(&request.reason)?,
            )
            .await?;
        asking.wait_for_everybody().await;
        let hold = asking.shown(&event)?.hold;
        Ok(Response::new(shown::HoldResponse { hold, takes_back: asking.taken_back(&event) }))
    }

    async fn release(&self, request: Request<shown::ReleaseRequest>) -> Answer<shown::ReleaseResponse> {
        let (asking, request) = self.asked(request);
        let event = asking.event(&request.event)?;
        asking.ask(OperatorRequest::Release { event: event.clone() }, reason(&request.reason)?).await?;
        Ok(Response::new(shown::ReleaseResponse { event: Some(asking.shown(&event)?) }))
    }

    async fn pause(&self, request: Request<shown::PauseRequest>) -> Answer<shown::PauseResponse> {
        let (asking, request) = self.asked(request);
        let until = asking.end(request.until).await?;
        asking.ask(OperatorRequest::Pause { until }, reason(&request.reason)?).await?;
        asking.wait_for_everybody().await;
        let state = self.cluster.state();
        let late = state.too_late_to_hold().map(|event| event.announcement.id.to_string());
        Ok(Response::new(shown::PauseResponse { pause: self.view.status().paused, too_late_for: late.collect() }))
    }

    async fn resume(&self, request: Request<shown::ResumeRequest>) -> Answer<shown::ResumeResponse> {
        let (asking, request) = self.asked(request);
        asking.ask(OperatorRequest::Resume, reason(&request.reason)?).await?;
        Ok(Response::new(shown::ResumeResponse { events: self.view.undecided_events() }))
    }

    async fn approve(&self, request: Request<shown::ApproveRequest>) -> Answer<shown::ApproveResponse> {
        let (asking, request) = self.asked(request);
        let event = asking.event(&request.event)?;
        if request.alone {
            return asking.approve_alone(event, request.revision, reason(&request.reason)?).await.map(Response::new);
        }
        let Some(revision) = request.revision else {
            let now = asking.shown(&event)?.revision;
            let message = format!(
                "event {event} is at revision {now} now; check the event with `allclear explain {event}`, and repeat \
                 the command with --revision {now}"
            );
            return Err(Status::failed_precondition(message));
        };
        let over_budget = request.over_budget;
        let what = OperatorRequest::Approve { event: event.clone(), revision, over_budget };
        asking.ask(what, reason(&request.reason)?).await?;
        Ok(Response::new(shown::ApproveResponse { event: Some(asking.shown(&event)?) }))
    }

    async fn declare_restored(
        &self,
        request: Request<shown::DeclareRestoredRequest>,
    ) -> Answer<shown::DeclareRestoredResponse> {
        let (asking, request) = self.asked(request);
        let reason = reason(&request.reason)?;
        let member = member(&request.workload)?;
        asking.ask(OperatorRequest::Restored { member }, reason).await?;
        Ok(Response::new(shown::DeclareRestoredResponse {}))
    }

    async fn remove_workload(
        &self,
        request: Request<shown::RemoveWorkloadRequest>,
    ) -> Answer<shown::RemoveWorkloadResponse> {
        let (asking, request) = self.asked(request);
        let (member, why) = (member(&request.workload)?, reason(&request.reason)?);
        asking.wait_for_quorum().await?;
        asking.catch_up().await?;
        let may = self.cluster.state().may_remove_registration(&self.cluster.node.name, &member);
        may.map_err(|reason| Status::failed_precondition(format!("{}: {reason}", member.path())))?;
        asking.record(format!("removal of the registration of {member}"), Some(why)).await?;
        let prepared_for = |state: &State| {
            let slot = state.slots.get(&member).filter(|slot| slot.needs_restore);
            slot.map(|slot| slot.by.to_string())
        };
        let owed = prepared_for(&self.cluster.state());
        removal::deregister(&self.cluster, &self.hooks.runner.sessions, &member.workload, true).await?;
        // A configured workload of the same name is restored in its place.
        let unrestored_after = owed.filter(|_| prepared_for(&self.cluster.state()).is_none());
        Ok(Response::new(shown::RemoveWorkloadResponse { unrestored_after }))
    }

    async fn prepare(&self, request: Request<shown::PrepareRequest>) -> Answer<shown::PrepareResponse> {
        let (asking, request) = self.asked(request);
        let now = shown::End { when: Some(shown::end::When::AfterMs(0)) };
        let (event, from) = (asking.event(&request.event)?, asking.end(request.at.or(Some(now))).await?);
        asking.ask(OperatorRequest::Prepare { event: event.clone(), from }, reason(&request.reason)?).await?;
        Ok(Response::new(shown::PrepareResponse { event: Some(asking.shown(&event)?) }))
    }

    async fn retry(&self, request: Request<shown::RetryRequest>) -> Answer<shown::RetryResponse> {
        let (asking, shown::RetryRequest { event, hook, reason }) = self.asked(request);
        let retry = |event, member, hook| OperatorRequest::Retry { event, member, hook };
        let (hook, event) = asking.ask_about_hook(&event, &hook, &reason, retry).await?;
        Ok(Response::new(shown::RetryResponse { hook, event: Some(event) }))
    }

    async fn skip(&self, request: Request<shown::SkipRequest>) -> Answer<shown::SkipResponse> {
        let (asking, shown::SkipRequest { event, hook, reason }) = self.asked(request);
        let skip = |event, member, hook| OperatorRequest::Skip { event, member, hook };
        let (hook, event) = asking.ask_about_hook(&event, &hook, &reason, skip).await?;
        Ok(Response::new(shown::SkipResponse { hook, event: Some(event) }))
    }
}
