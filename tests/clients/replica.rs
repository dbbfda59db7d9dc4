//! A replica scripted by the test, behind the service's socket.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use allclear::wire::pb::allclear::workload::v1;
use allclear::wire::pb::allclear::workload::v1::from_workload::Message as Said;
use allclear::wire::pb::allclear::workload::v1::report::News;
use allclear::wire::pb::allclear::workload::v1::to_workload::Message as Tell;
use allclear::wire::pb::allclear::workload::v1::workloads_server::{Workloads, WorkloadsServer};
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
use tonic::{Request, Response, Status, Streaming};

use crate::clients::bench::LIMIT;

type ToWorkload = Result<v1::ToWorkload, Status>;

pub(crate) struct Replica {
    sessions: mpsc::Receiver<Dialled>,
    server: JoinHandle<()>,
}

/// A workload that has connected and sent its `Hello`.
pub(crate) struct Dialled {
    pub(crate) hello: v1::Hello,
    said: Streaming<v1::FromWorkload>,
    tell: mpsc::Sender<ToWorkload>,
}

pub(crate) struct Session {
    pub(crate) hello: v1::Hello,
    said: mpsc::UnboundedReceiver<Said>,
    tell: mpsc::Sender<ToWorkload>,
    /// While set, heartbeats are not answered.
    pub(crate) is_mute: Arc<AtomicBool>,
    /// Attempts whose outcome this session has acknowledged.
    acknowledged: Mutex<BTreeSet<String>>,
}

impl Replica {
    pub(crate) fn new(socket: &Path) -> Self {
        let (dialled, sessions) = mpsc::channel(16);
        let incoming = UnixListenerStream::new(UnixListener::bind(socket).unwrap());
        let service = WorkloadsServer::new(Door { dialled });
        let serving = tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming);
        let server = tokio::spawn(async move { serving.await.unwrap() });
        Self { sessions, server }
    }

    pub(crate) async fn dialled(&mut self) -> Dialled {
        timeout(LIMIT, self.sessions.recv()).await.expect("the workload dials").expect("the door is open")
    }

    /// The next session, with a lease of a second.
    pub(crate) async fn session(&mut self) -> Session {
        self.dialled().await.welcome(&[]).await
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Dialled {
    pub(crate) async fn welcome(self, acknowledged: &[&str]) -> Session {
        let acknowledged = acknowledged.iter().map(ToString::to_string).collect();
        self.welcome_with(v1::Welcome { acknowledged, ..v1::Welcome::default() }).await
    }

    pub(crate) async fn welcome_with(self, rest: v1::Welcome) -> Session {
        let (session, vm) = ("1".to_owned(), "db-0".to_owned());
        let welcome = v1::Welcome { version: 1, session, lease_ms: 1000, vm, ..rest };
        let is_mute = Arc::new(AtomicBool::new(false));
        let (sender, said) = mpsc::unbounded_channel();
        let session = Session {
            hello: self.hello,
            said,
            tell: self.tell.clone(),
            is_mute: is_mute.clone(),
            acknowledged: Mutex::default(),
        };
        session.tell(Tell::Welcome(welcome)).await;
        // whatever the test waits for meanwhile
        tokio::spawn(hear(self.said, sender, self.tell, is_mute));
        session
    }

    pub(crate) async fn refuse(self, status: Status) {
        self.tell.send(Err(status)).await.unwrap();
    }
}

impl Session {
    pub(crate) async fn tell(&self, message: Tell) {
        self.tell.send(Ok(v1::ToWorkload { message: Some(message) })).await.unwrap();
    }

    pub(crate) async fn step(&self, step: &v1::Step) {
        self.tell(Tell::Step(step.clone())).await;
    }

    pub(crate) async fn acknowledge(&self, attempt: &str) {
        self.acknowledged.lock().unwrap().insert(attempt.into());
        self.tell(Tell::Acknowledged(v1::Acknowledged { attempt: attempt.into(), ..v1::Acknowledged::default() }))
            .await;
    }

    /// The next message of the workload; `None` once the workload has ended the session.
    pub(crate) async fn said(&mut self) -> Option<Said> {
        let said = timeout(LIMIT, self.said.recv()).await.expect("the workload says something")?;
        if let Said::Heartbeat(heartbeat) = &said
            && heartbeat.role() != v1::Role::Unspecified
        {
            self.hello.role = heartbeat.role;
        }
        Some(said)
    }

    pub(crate) async fn heartbeat(&mut self) -> v1::Heartbeat {
        match self.said().await {
            Some(Said::Heartbeat(heartbeat)) => heartbeat,
            other => panic!("{other:?} instead of a heartbeat"),
        }
    }

    /// The next report, whatever heartbeats precede the report.
    pub(crate) async fn report(&mut self) -> (String, News) {
        loop {
            match self.said().await {
                Some(Said::Report(report)) => return (report.attempt, report.news.expect("a report has news")),
                Some(Said::Heartbeat(_)) => {}
                other => panic!("{other:?} instead of a report"),
            }
        }
    }

    /// The next outcome in one word, with its reason, if the outcome belongs to this attempt.
    pub(crate) async fn outcome(&mut self, attempt: &str) -> String {
        loop {
            match self.report().await {
                (of, News::Outcome(outcome)) if of == attempt => return in_words(&outcome),
                // A workload repeats an outcome with each heartbeat until the acknowledgement arrives.
                (of, News::Outcome(_)) if self.acknowledged.lock().unwrap().contains(&of) => {}
                other => panic!("{other:?} instead of the outcome of {attempt}"),
            }
        }
    }

    /// Waits for the outcome, and acknowledges the outcome.
    pub(crate) async fn settled(&mut self, attempt: &str) -> String {
        let outcome = self.outcome(attempt).await;
        self.acknowledge(attempt).await;
        outcome
    }

    pub(crate) fn known(&self) -> Vec<String> {
        let told = |known: &v1::Known| match &known.outcome {
            Some(outcome) => format!("{} {}", known.attempt, in_words(outcome)),
            None => format!("{} runs", known.attempt),
        };
        self.hello.known.iter().map(told).collect()
    }

    /// Breaks the session off in the middle.
    pub(crate) async fn cut(self) {
        self.refuse(Status::unavailable("the replica stops")).await;
    }

    pub(crate) async fn refuse(self, status: Status) {
        self.tell.send(Err(status)).await.unwrap();
    }
}

/// Receives until the workload ends the session, or the test has dropped the session.
async fn hear(
    mut said: Streaming<v1::FromWorkload>,
    heard: mpsc::UnboundedSender<Said>,
    tell: mpsc::Sender<ToWorkload>,
    is_mute: Arc<AtomicBool>,
) {
    while let Ok(Some(message)) = said.message().await {
        let message = message.message.expect("a message says something");
        if matches!(message, Said::Heartbeat(_)) && !is_mute.load(Ordering::Relaxed) {
            let pong = v1::ToWorkload { message: Some(Tell::Pong(v1::Pong { lease_ms: 1000 })) };
            // the stream may have been cut
            let _ = tell.send(Ok(pong)).await;
        }
        if heard.send(message).is_err() {
            return;
        }
    }
}

fn in_words(outcome: &v1::Outcome) -> String {
    use v1::outcome::Variant;
    match outcome.variant.as_ref().expect("an outcome is one") {
        Variant::Done(_) => "done".into(),
        Variant::NotApplicable(_) => "not_applicable".into(),
        Variant::NotDone(_) => "not_done".into(),
        Variant::Failed(why) => format!("failed: {why}"),
        Variant::Blocked(why) => format!("blocked: {why}"),
        Variant::Cancelled(_) => "cancelled".into(),
        Variant::Unknown(why) => format!("unknown: {why}"),
        Variant::Stale(_) => "stale".into(),
    }
}

/// A step of event e1, the first step of this event, with a minute of time.
pub(crate) fn step(attempt: &str, phase: v1::Phase, intent: v1::Intent) -> v1::Step {
    let sequence = attempt.trim_start_matches('a').parse().unwrap();
    v1::Step {
        attempt: attempt.into(),
        step: format!("e1@1/db-0/orders/{}/0", phase.as_str_name()),
        fence: Some(v1::Fence { term: 1, sequence }),
        intent: intent.into(),
        mode: v1::Mode::Live.into(),
        phase: phase.into(),
        event: Some(v1::Event { id: "e1".into(), r#type: "Reboot".into(), ..v1::Event::default() }),
        vm: "db-0".into(),
        group: Some("shop".into()),
        time_left_ms: 60_000,
        ..v1::Step::default()
    }
}

pub(crate) fn run(attempt: &str, phase: v1::Phase) -> v1::Step {
    step(attempt, phase, v1::Intent::Run)
}

struct Door {
    dialled: mpsc::Sender<Dialled>,
}

#[tonic::async_trait]
impl Workloads for Door {
    type SessionStream = ReceiverStream<ToWorkload>;
    type WatchEventsStream = ReceiverStream<Result<v1::Events, Status>>;

    async fn session(
        &self,
        request: Request<Streaming<v1::FromWorkload>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let mut said = request.into_inner();
        let (tell, told) = mpsc::channel(64);
        let first = timeout(Duration::from_secs(10), said.message()).await.expect("hello comes first")?;
        let Some(Said::Hello(hello)) = first.and_then(|first| first.message) else {
            return Err(Status::invalid_argument("say hello first"));
        };
        // the test may be over
        let _ = self.dialled.send(Dialled { hello, said, tell }).await;
        Ok(Response::new(ReceiverStream::new(told)))
    }

    async fn register(&self, _: Request<v1::Hello>) -> Result<Response<v1::Welcome>, Status> {
        Err(Status::unimplemented("not used"))
    }

    async fn poll(&self, _: Request<v1::PollRequest>) -> Result<Response<v1::PollResponse>, Status> {
        Err(Status::unimplemented("not used"))
    }

    async fn report(&self, _: Request<v1::ReportRequest>) -> Result<Response<v1::ReportResponse>, Status> {
        Err(Status::unimplemented("not used"))
    }

    async fn say_goodbye(&self, _: Request<v1::SayGoodbyeRequest>) -> Result<Response<v1::SayGoodbyeResponse>, Status> {
        Err(Status::unimplemented("the clients use streams"))
    }

    async fn unregister(&self, _: Request<v1::UnregisterRequest>) -> Result<Response<v1::UnregisterResponse>, Status> {
        Err(Status::unimplemented("not used"))
    }

    async fn watch_events(
        &self,
        _: Request<v1::WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        Err(Status::unimplemented("not used"))
    }
}
