//! One session over a stream, until either side ends it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::{Status, Streaming};

use super::events::{self, Seen, ms};
use super::hello;
use super::message::{self, to_workload};
use super::{MESSAGES_A_SECOND, MESSAGES_AT_ONCE, WorkloadRpc};
use crate::hooks::session::{SessionClosed, SessionToken, ToWorkload};
use crate::net::limits::RateLimiter;
use allclear_core::model::id::EventId;
use allclear_wire::pb::allclear::workload::v1 as pb;
use allclear_wire::pb::allclear::workload::v1::from_workload::Message as From;
use allclear_wire::pb::allclear::workload::v1::to_workload::Message as To;

/// Messages sent but not yet read; the connection holds some more.
pub(super) const UNREAD: usize = 16;
/// The session of a workload that reads nothing for this long is closed.
const READS_WITHIN: Duration = Duration::from_secs(5);

pub(super) type Answer = Result<pb::ToWorkload, Status>;

pub(super) struct Stream {
    pub(super) door: Arc<WorkloadRpc>,
    pub(super) visit: SessionToken,
    /// The user id of the workload's process.
    pub(super) uid: u32,
    pub(super) messages: Streaming<pb::FromWorkload>,
    pub(super) told: mpsc::Receiver<ToWorkload>,
    pub(super) out: mpsc::Sender<Answer>,
    pub(super) events: Seen,
    pub(super) pace: RateLimiter,
    /// The events as last sent to the workload.
    pub(super) shown: Arc<Vec<pb::Event>>,
}

/// The reason why the stream ends.
enum StreamEnd {
    /// The workload disconnected or is unreachable.
    Gone,
    With(Status),
}

impl std::convert::From<SessionClosed> for StreamEnd {
    fn from(over: SessionClosed) -> Self {
        Self::With(Status::aborted(over.to_string()))
    }
}

impl Stream {
    pub(super) async fn run(mut self, welcome: pb::Welcome) {
        let end = match self.say(To::Welcome(welcome)).await {
            Ok(()) => self.talk().await,
            Err(end) => end,
        };
        self.hear_last_reports();
        self.door.hooks.runner.sessions.leave(&self.visit);
        tracing::debug!(workload = %self.visit.workload, "session ended");
        if let StreamEnd::With(status) = end {
            let _ = timeout(READS_WITHIN, self.out.send(Err(status))).await;
        }
    }

    /// Takes the reports that arrived before the end of the stream: a workload without a journal on disk that has ended
    /// since does not repeat an outcome.
    fn hear_last_reports(&mut self) {
        let sessions = &self.door.hooks.runner.sessions;
        while let Some(Ok(Some(message))) = self.messages.message().now_or_never() {
            if !self.pace.take() {
                return;
            }
            if let Some(From::Report(report)) = message.message
                && let Ok((attempt, said)) = message::said(report, &self.visit.workload, &self.door)
            {
                // A later session of the workload has the outcome too.
                let _ = sessions.report(&self.visit, &attempt, said);
            }
        }
    }

    async fn talk(&mut self) -> StreamEnd {
        loop {
            let turn = tokio::select! {
                message = self.messages.message() => match message {
                    Ok(Some(message)) => self.heard(message).await,
                    Ok(None) => Err(StreamEnd::Gone),
                    Err(status) => Err(StreamEnd::With(status)),
                },
                told = self.told.recv() => self.tell(told).await,
                Ok(()) = self.events.changed() => self.tell_events().await,
                () = self.door.stop.cancelled() => self.go_away("this replica is stopping").await,
                () = self.out.closed() => Err(StreamEnd::Gone),
            };
            if let Err(end) = turn {
                return end;
            }
        }
    }

    async fn say(&self, message: To) -> Result<(), StreamEnd> {
        let sent = timeout(READS_WITHIN, self.out.send(Ok(to_workload(message)))).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(StreamEnd::Gone),
            Err(_) => Err(StreamEnd::With(does_not_read())),
        }
    }

    async fn go_away(&self, why: &str) -> Result<(), StreamEnd> {
        self.say(To::GoAway(message::go_away(why))).await?;
        Err(StreamEnd::Gone)
    }

    async fn heard(&mut self, message: pb::FromWorkload) -> Result<(), StreamEnd> {
        if !self.pace.take() {
            let most = format!(
                "this session sent more than {MESSAGES_A_SECOND} messages per second; connect again, and send fewer \
                 messages"
            );
            return Err(StreamEnd::With(Status::resource_exhausted(most)));
        }
        let sessions = &self.door.hooks.runner.sessions;
        match message.message {
            Some(From::Heartbeat(pb::Heartbeat { role })) => {
                let Some(role) = hello::role(role) else {
                    return self
                        .say(To::Problem(problem("heartbeat.role", "this version does not know the role")))
                        .await;
                };
                let lease = sessions.hear(&self.visit, role)?;
                self.say(To::Pong(pb::Pong { lease_ms: ms(lease) })).await
            }
            Some(From::Report(report)) => match message::said(report, &self.visit.workload, &self.door) {
                Ok((attempt, said)) => Ok(sessions.report(&self.visit, &attempt, said)?),
                Err(problem) => self.say(To::Problem(problem)).await,
            },
            Some(From::Goodbye(pb::Goodbye { unregister })) => {
                sessions.say_goodbye(&self.visit)?;
                if !unregister {
                    return Err(StreamEnd::Gone);
                }
                match self.door.unregister(&self.visit.workload, self.uid, false).await {
                    Ok(()) => Err(StreamEnd::Gone),
                    Err(status) => Err(StreamEnd::With(status)),
                }
            }
            Some(From::Hello(_)) => Err(StreamEnd::With(Status::invalid_argument("a session begins with Hello, once"))),
            // A newer version may have more messages.
            None => {
                sessions.hear(&self.visit, None)?;
                self.say(To::Problem(problem("message", "this version does not know the message"))).await
            }
        }
    }

    async fn tell(&mut self, told: Option<ToWorkload>) -> Result<(), StreamEnd> {
        let Some(told) = told else {
            return Err(StreamEnd::With(does_not_read()));
        };
        let is_last = matches!(told, ToWorkload::GoAway(_));
        let message = message::told(told, &self.door.cluster.state(), &self.door.view);
        if let Some(message) = message.message {
            self.say(message).await?;
        }
        if is_last { Err(StreamEnd::Gone) } else { Ok(()) }
    }

    /// Sends changed events of this VM; a closed event is sent a last time.
    async fn tell_events(&mut self) -> Result<(), StreamEnd> {
        let current = self.events.borrow_and_update().clone();
        let gone = self.shown.iter().filter(|shown| !current.iter().any(|event| event.id == shown.id));
        let closed = gone.filter_map(|shown| events::one(&self.door.view, &EventId::new(&shown.id)));
        let news = current.iter().filter(|event| !self.shown.contains(event)).cloned();
        for event in closed.chain(news).collect::<Vec<_>>() {
            self.say(To::Event(event)).await?;
        }
        self.shown = current;
        Ok(())
    }
}

pub(super) fn new_pace() -> RateLimiter {
    RateLimiter::new(MESSAGES_AT_ONCE, MESSAGES_A_SECOND)
}

fn does_not_read() -> Status {
    Status::resource_exhausted("this workload does not read its messages; connect again")
}

fn problem(place: &str, message: &str) -> pb::Problem {
    pb::Problem { place: Some(place.to_owned()), message: message.to_owned() }
}
