//! The workload service: registration, steps and their outcomes. `hooks::session` decides about sessions.

mod events;
mod hello;
mod message;
mod polling;
mod refusal;
pub(super) mod removal;
mod stream;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::{Stream as Streamed, StreamExt as _, stream as streams};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::{ReceiverStream, WatchStream};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};

use self::events::OpenStreams;
use self::events::ms;
use self::refusal::refused;
use self::stream::{Answer, Stream, UNREAD};
use super::uid_policy::caller;
use crate::hooks::session::{Hello, RegistrationError, SessionToken, ToWorkload};
use crate::net::limits::RateLimiters;
use crate::replica::SharedParts;
use crate::replica::attempt_key::is_recorded;
use crate::replica::cluster::ClusterHandle;
use crate::replica::hook_executor::HookExecutor;
use crate::replica::late_outcomes;
use crate::replica::metrics::Metrics;
use crate::replica::view::View;
use allclear_core::model::command::{ApplyResult, Command, RegisterSession, Rejection};
use allclear_core::model::id::WorkloadName;
use allclear_core::model::workload::Workload;
use allclear_wire::pb::allclear::workload::v1 as pb;
use allclear_wire::pb::allclear::workload::v1::workloads_server::{self, WorkloadsServer};

const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// A stream without `Hello` by then is closed.
const HELLO_WITHIN: Duration = Duration::from_secs(5);
const MESSAGES_AT_ONCE: u32 = 200;
const MESSAGES_A_SECOND: u32 = 50;
/// Limits of one user's registrations that change the log's state.
const CHANGES_AT_ONCE: u32 = 128;
const CHANGES_A_SECOND: u32 = 10;
/// The time limit for committing a registration.
const RECORDED_WITHIN: Duration = Duration::from_secs(10);

struct WorkloadRpc {
    cluster: Arc<ClusterHandle>,
    metrics: Arc<Metrics>,
    hooks: Arc<HookExecutor>,
    view: View,
    open: Arc<OpenStreams>,
    lines: polling::PollSessions,
    /// By user.
    changes: RateLimiters<u32>,
    stop: CancellationToken,
}

/// The service for session workloads.
pub fn workload_routes(shared: &SharedParts, hooks: Arc<HookExecutor>, view: View, stop: CancellationToken) -> Routes {
    let (cluster, metrics) = (shared.inputs.cluster.clone(), shared.metrics.clone());
    let open = OpenStreams::new(&view, cluster.node.name.clone(), stop.clone());
    let lines = polling::PollSessions::default();
    let changes = RateLimiters::new(CHANGES_AT_ONCE, CHANGES_A_SECOND);
    let door = WorkloadRpc { cluster, metrics, hooks, view, open, lines, changes, stop };
    let server = WorkloadsServer::new(WorkloadService(Arc::new(door)));
    Routes::new(server.max_decoding_message_size(MAX_MESSAGE_BYTES))
}

/// A session with its queue and its first message.
type Admitted = (SessionToken, mpsc::Receiver<ToWorkload>, pb::Welcome);

impl WorkloadRpc {
    /// Opens the session of a workload; the registration is in the log before the `Welcome`.
    async fn register(&self, hello: pb::Hello, uid: u32, polls: bool) -> Result<Admitted, Status> {
        let mut greeting = hello::read(hello, uid, polls).map_err(Status::invalid_argument)?;
        let sessions = &self.hooks.runner.sessions;
        let welcome =
            self.cluster.state().may_register(&self.cluster.node.name, &greeting.workload, &self.cluster.node.grants);
        welcome.map_err(|why| self.denied(uid, &greeting.workload.name, &why))?;
        let reserved =
            sessions.reserve(&greeting.workload.name, &greeting.boot).map_err(|refusal| refused(&refusal))?;
        self.enlist(&greeting.workload, uid).await?;
        let acknowledged = self.take_out_what_is_recorded(&mut greeting);
        let state = self.cluster.state();
        let configured =
            state.replicas.get(&self.cluster.node.name).map(|me| me.workloads.as_slice()).unwrap_or_default();
        let problems = hello::odd(&greeting.workload, configured, &self.cluster.node.grants);
        let lease_ms = ms(greeting.lease);
        tracing::info!(workload = %greeting.workload.name, uid, boot = greeting.boot, "session workload registered");
        let (visit, told) = sessions.admit(&reserved, greeting);
        let welcome = pb::Welcome {
            version: hello::VERSION,
            session: visit.shown(),
            lease_ms,
            vm: self.cluster.node.name.to_string(),
            acknowledged,
            problems,
            events: self.open.here.watch().borrow().to_vec(),
        };
        Ok((visit, told, welcome))
    }

    async fn enlist(&self, workload: &Workload, uid: u32) -> Result<(), Status> {
        let is_listed = |state: &Arc<_>| {
            self.listed(state, &workload.name).is_some_and(|known| known.is_same_registration(workload))
        };
        if is_listed(&self.cluster.state()) {
            return Ok(());
        }
        if !self.changes.of(uid).lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(Status::resource_exhausted(format!(
                "uid {uid} changes registrations too often; wait one second"
            )));
        }
        let enlisting = async {
            let mut state = self.cluster.committed.clone();
            // This replica registers its own configuration first.
            let _ = state.wait_for(|state| state.replicas.contains_key(&self.cluster.node.name)).await;
            let verdict =
                self.cluster.record(&Command::RegisterSession(RegisterSession { workload: workload.clone() })).await;
            if matches!(verdict, ApplyResult::Applied | ApplyResult::Rejected(Rejection::Repeated)) {
                let _ = state.wait_for(is_listed).await;
            }
            verdict
        };
        match timeout(RECORDED_WITHIN, enlisting).await {
            Ok(ApplyResult::Applied | ApplyResult::Rejected(Rejection::Repeated)) => Ok(()),
            Ok(ApplyResult::Rejected(Rejection::TooManyWorkloads)) => Err(refused(&RegistrationError::Full)),
            Ok(ApplyResult::Rejected(Rejection::NotYours)) => {
                Err(Status::permission_denied(format!("{} is the workload of another user", workload.name)))
            }
            Ok(ApplyResult::Rejected(why)) => Err(Status::unavailable(format!("the registration was ignored: {why}"))),
            Err(_) => {
                Err(Status::unavailable("the registration is not recorded, because there is no quorum; connect again"))
            }
        }
    }

    fn listed<'a>(&self, state: &'a allclear_core::model::state::State, name: &WorkloadName) -> Option<&'a Workload> {
        state.replicas.get(&self.cluster.node.name)?.sessions.get(name)
    }

    /// Removes attempts whose outcomes are in the log already, and returns their ids.
    fn take_out_what_is_recorded(&self, greeting: &mut Hello) -> Vec<String> {
        let (state, name) = (self.cluster.state(), &greeting.workload.name);
        let known = core::mem::take(&mut greeting.known).into_iter();
        let (recorded, open) =
            known.partition(|(attempt, ended)| ended.is_some() && is_recorded(&state, name, attempt));
        greeting.known = open;
        let recorded: BTreeMap<String, _> = recorded;
        for (attempt, ended) in &recorded {
            if let Some(ended) = ended {
                late_outcomes::report_late_outcomes(&self.cluster, &state, name, attempt, ended.clone());
            }
        }
        recorded.into_keys().collect()
    }

    async fn unregister(&self, name: &WorkloadName, uid: u32, force: bool) -> Result<(), Status> {
        let state = self.cluster.state();
        let sessions = &self.hooks.runner.sessions;
        if self.listed(&state, name).is_none() && !sessions.is_seated(name) {
            return Ok(());
        }
        let may = state.may_deregister(&self.cluster.node.name, name, (uid, &self.cluster.node.grants), force);
        may.map_err(|why| self.denied(uid, name, &why))?;
        let forced = force && self.cluster.node.grants.trusts(uid);
        removal::deregister(&self.cluster, sessions, name, forced).await
    }
}

/// The uid of the caller.
fn caller_uid<T>(request: &Request<T>) -> Result<u32, Status> {
    let caller = caller(request.extensions());
    caller
        .map(|(uid, _)| uid)
        .ok_or_else(|| Status::permission_denied("the operating system does not report the uid of the caller"))
}

type Answered<T> = Result<Response<T>, Status>;

/// Serves `allclear.workload.v1`.
struct WorkloadService(Arc<WorkloadRpc>);

#[tonic::async_trait]
impl workloads_server::Workloads for WorkloadService {
    type SessionStream = ReceiverStream<Answer>;

    async fn session(&self, request: Request<Streaming<pb::FromWorkload>>) -> Answered<Self::SessionStream> {
        let uid = caller_uid(&request)?;
        let mut messages = request.into_inner();
        let first = timeout(HELLO_WITHIN, messages.message()).await;
        let first = first.map_err(|_| Status::deadline_exceeded("the workload sent no Hello within 5 s"))??;
        let Some(pb::from_workload::Message::Hello(hello)) = first.and_then(|first| first.message) else {
            return Err(Status::invalid_argument("a session begins with Hello"));
        };
        // Subscribed before the welcome, so that changes between the two are sent after the welcome.
        let events = self.0.open.here.watch();
        let (visit, told, welcome) = self.0.welcome(hello, uid, false).await?;
        let (out, answers) = mpsc::channel(UNREAD);
        let stream = Stream {
            door: self.0.clone(),
            visit,
            uid,
            messages,
            told,
            out,
            events,
            pace: stream::new_pace(),
            shown: Arc::new(welcome.events.clone()),
        };
        tokio::spawn(stream.run(welcome));
        Ok(Response::new(ReceiverStream::new(answers)))
    }

    async fn register(&self, request: Request<pb::Hello>) -> Answered<pb::Welcome> {
        let uid = caller_uid(&request)?;
        let (visit, told, welcome) = self.0.welcome(request.into_inner(), uid, true).await?;
        self.0.lines.keep(&visit, uid, told);
        Ok(Response::new(welcome))
    }

    async fn poll(&self, request: Request<pb::PollRequest>) -> Answered<pb::PollResponse> {
        let uid = caller_uid(&request)?;
        Ok(Response::new(polling::poll(&self.0, uid, request.into_inner()).await?))
    }

    async fn report(&self, request: Request<pb::ReportRequest>) -> Answered<pb::ReportResponse> {
        let uid = caller_uid(&request)?;
        Ok(Response::new(polling::report(&self.0, uid, request.into_inner()).await?))
    }

    async fn say_goodbye(&self, request: Request<pb::SayGoodbyeRequest>) -> Answered<pb::SayGoodbyeResponse> {
        let uid = caller_uid(&request)?;
        Ok(Response::new(polling::say_goodbye(&self.0, uid, request.get_ref())?))
    }

    async fn unregister(&self, request: Request<pb::UnregisterRequest>) -> Answered<pb::UnregisterResponse> {
        let uid = caller_uid(&request)?;
        let pb::UnregisterRequest { workload, force } = request.into_inner();
        if !hello::is_name(&workload) {
            return Err(Status::invalid_argument("workload: the value is not the name of a workload"));
        }
        let workload = WorkloadName(workload);
        self.0.unregister(&workload, uid, force).await?;
        Ok(Response::new(pb::UnregisterResponse {}))
    }

    type WatchEventsStream = Pin<Box<dyn Streamed<Item = Result<pb::Events, Status>> + Send>>;

    async fn watch_events(&self, _: Request<pb::WatchEventsRequest>) -> Answered<Self::WatchEventsStream> {
        let events = WatchStream::new(self.0.open.all.watch()).map(|events| Ok(pb::Events { events: events.to_vec() }));
        let stops = streams::once(async { Err(Status::unavailable("this replica is stopping")) });
        Ok(Response::new(Box::pin(events.take_until(self.0.stop.clone().cancelled_owned()).chain(stops))))
    }
}
