//! A session workload, driven by a test: the test chooses the messages, and heartbeats are sent meanwhile.

use std::path::Path;
use std::time::Duration;

use allclear::wire::pb::allclear::workload::v1 as pb;
use allclear::wire::pb::allclear::workload::v1::from_workload::Message as Says;
use allclear::wire::pb::allclear::workload::v1::outcome::Variant;
use allclear::wire::pb::allclear::workload::v1::report::News;
use allclear::wire::pb::allclear::workload::v1::to_workload::Message as Told;
use allclear::wire::pb::allclear::workload::v1::workloads_client::WorkloadsClient;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};

/// Only a failing test waits this long.
const LIMIT: Duration = Duration::from_mins(2);
const BEAT_EVERY: Duration = Duration::from_millis(300);

pub(crate) struct Dialled {
    pub(crate) welcome: pb::Welcome,
    /// Ids of the events received.
    heard_of: Vec<String>,
    says: mpsc::Sender<pb::FromWorkload>,
    told: Streaming<pb::ToWorkload>,
    beats: AbortHandle,
}

impl Drop for Dialled {
    fn drop(&mut self) {
        self.beats.abort();
    }
}

pub(crate) fn hook(phase: pb::Phase) -> pb::Hook {
    pb::Hook { phase: phase.into(), can_confirm: true, ..pb::Hook::default() }
}

pub(crate) fn hello(workload: &str, hooks: Vec<pb::Hook>) -> pb::Hello {
    pb::Hello { versions: vec![1], workload: workload.into(), boot: "first".into(), hooks, ..pb::Hello::default() }
}

pub(crate) fn knows(attempt: &str, outcome: Option<Variant>) -> Vec<pb::Known> {
    vec![pb::Known { attempt: attempt.into(), outcome: outcome.map(|variant| pb::Outcome { variant: Some(variant) }) }]
}

pub(crate) fn done() -> Variant {
    Variant::Done(pb::Nothing {})
}

/// A client for the unary calls. Waits until a replica serves the socket.
pub(crate) async fn client(door: &Path) -> WorkloadsClient<Channel> {
    let began = Instant::now();
    loop {
        match Endpoint::from_shared(format!("unix://{}", door.display())).unwrap().connect().await {
            Ok(channel) => return WorkloadsClient::new(channel),
            Err(error) => assert!(began.elapsed() < LIMIT, "nobody serves {}: {error}", door.display()),
        }
        sleep(Duration::from_millis(20)).await;
    }
}

impl Dialled {
    /// Connects until accepted: a replica that has just started may not know yet which replica to ask.
    pub(crate) async fn at(door: &Path, hello: pb::Hello) -> Self {
        let began = Instant::now();
        loop {
            match Self::try_at(door, hello.clone()).await {
                Ok(dialled) => return dialled,
                Err(refusal) => assert!(began.elapsed() < LIMIT, "not taken in: {refusal}"),
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn try_at(door: &Path, hello: pb::Hello) -> Result<Self, Status> {
        let (says, messages) = mpsc::channel(64);
        says.send(pb::FromWorkload { message: Some(Says::Hello(hello)) }).await.unwrap();
        let mut client = client(door).await;
        let mut told = client.session(ReceiverStream::new(messages)).await?.into_inner();
        let Some(Told::Welcome(welcome)) = told.message().await?.and_then(|first| first.message) else {
            panic!("the first message is no Welcome")
        };
        let beats = {
            let says = says.clone();
            tokio::spawn(async move {
                let beat = || pb::FromWorkload { message: Some(Says::Heartbeat(pb::Heartbeat { role: 0 })) };
                while says.send(beat()).await.is_ok() {
                    sleep(BEAT_EVERY).await;
                }
            })
        };
        let heard_of = welcome.events.iter().map(|event| event.id.clone()).collect();
        Ok(Self { welcome, heard_of, says, told, beats: beats.abort_handle() })
    }

    pub(crate) async fn say(&self, message: Says) {
        self.says.send(pb::FromWorkload { message: Some(message) }).await.unwrap();
    }

    pub(crate) async fn report(&self, attempt: &str, news: News) {
        self.say(Says::Report(pb::Report { attempt: attempt.into(), news: Some(news) })).await;
    }

    /// Reports the outcome of an attempt.
    pub(crate) async fn ends(&self, attempt: &str, variant: Variant) {
        self.report(attempt, News::Outcome(pb::Outcome { variant: Some(variant) })).await;
    }

    pub(crate) async fn becomes(&self, role: pb::Role) {
        self.say(Says::Heartbeat(pb::Heartbeat { role: role.into() })).await;
    }

    async fn message(&mut self) -> Result<Told, Status> {
        let next = timeout(LIMIT, self.told.message()).await.expect("nothing was said");
        let message = next?.ok_or_else(|| Status::ok("the stream has ended"))?.message.unwrap();
        if let Told::Event(event) = &message {
            self.heard_of.push(event.id.clone());
        }
        Ok(message)
    }

    /// The next message except events and pongs, or the status at the end of the stream.
    pub(crate) async fn next(&mut self) -> Result<Told, Status> {
        loop {
            match self.message().await? {
                Told::Event(_) | Told::Pong(_) => {}
                message => return Ok(message),
            }
        }
    }

    /// Waits for the notification of an open event: in the welcome, or right after the welcome if the event is new.
    pub(crate) async fn hears_of(&mut self, id: &str) {
        while !self.heard_of.iter().any(|heard| heard == id) {
            let message = self.message().await.unwrap();
            assert!(matches!(message, Told::Event(_) | Told::Pong(_)), "{message:?}");
        }
    }

    /// Receives only events and `times` answers to heartbeats.
    pub(crate) async fn is_only_answered(&mut self, times: usize) {
        let mut answers = 0;
        while answers < times {
            match self.message().await.unwrap() {
                Told::Pong(_) => answers += 1,
                Told::Event(_) => {}
                other => panic!("it is told more: {other:?}"),
            }
        }
    }

    /// The next message, which is a step.
    pub(crate) async fn step(&mut self) -> pb::Step {
        match self.next().await.unwrap() {
            Told::Step(step) => step,
            other => panic!("no step: {other:?}"),
        }
    }

    /// Completes the next step and waits for the acknowledgement of the outcome.
    pub(crate) async fn does(&mut self, phase: pb::Phase) -> pb::Step {
        let step = self.step().await;
        assert_eq!(step.phase(), phase, "{step:?}");
        self.ends(&step.attempt, done()).await;
        assert_eq!(self.acknowledged(&step.attempt).await.as_deref(), Some("done"));
        step
    }

    /// The outcome that the log has for the acknowledged attempt.
    pub(crate) async fn acknowledged(&mut self, expected: &str) -> Option<String> {
        match self.next().await.unwrap() {
            Told::Acknowledged(pb::Acknowledged { attempt, outcome }) if attempt == expected => outcome,
            other => panic!("not the acknowledgement of {expected}: {other:?}"),
        }
    }

    /// The status at the end of the stream, regardless of earlier messages.
    pub(crate) async fn end(&mut self) -> Status {
        loop {
            match timeout(LIMIT, self.told.message()).await.expect("it goes on") {
                Ok(Some(_)) => {}
                Ok(None) => return Status::ok("the stream has ended"),
                Err(status) => return status,
            }
        }
    }
}
