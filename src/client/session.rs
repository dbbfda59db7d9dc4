//! The stream to the replica: connected until the workload stops, kept alive, and resumed after a loss.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until, timeout_at};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

use super::ConnectionState;
use super::backoff::Backoff;
use super::execute::carry_out;
use super::hook::Hook;
use super::journal::Act;
use super::outcome::Outcome;
use super::session_end::SessionEnd;
use super::talk::Talk;
use super::tracker::AttemptTracker;
use allclear_wire::pb::allclear::workload::v1;
use allclear_wire::pb::allclear::workload::v1::from_workload::Message as Say;
use allclear_wire::pb::allclear::workload::v1::to_workload::Message as Heard;
use allclear_wire::pb::allclear::workload::v1::workloads_client::WorkloadsClient;

/// A registration is answered when the registration is in the log, or after 10 s.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// Outcomes sent again with a heartbeat: a replica takes no more than 50 messages a second.
const REPEATED: usize = 10;
/// The largest message of a replica.
const LARGEST: usize = 1024 * 1024;
const LONGEST_ID: usize = 512;
const LEASES: (u64, u64) = (1_000, 300_000);
const LATEST_DIAL: Duration = Duration::from_secs(30);
/// For at most this long after the stop, outcomes without an acknowledgement are delivered before the goodbye: with a
/// journal in memory, no later process repeats the outcomes.
const SETTLES_WITHIN: Duration = Duration::from_secs(5);
const SETTLE_PAUSE: Duration = Duration::from_millis(200);

pub(super) struct Dialler {
    pub(super) socket: PathBuf,
    /// The registration without the parts that change: the role, and the known attempts.
    pub(super) hello: v1::Hello,
    pub(super) hooks: Arc<[Hook]>,
    pub(super) desk: Arc<AttemptTracker>,
    pub(super) role: watch::Receiver<v1::Role>,
    pub(super) connection: watch::Sender<ConnectionState>,
    pub(super) stop: CancellationToken,
    /// On stopping, the registration is taken back too.
    pub(super) unregister: CancellationToken,
    /// The end of the delivery after the stop.
    pub(super) settles_until: Option<Instant>,
    /// A replica has accepted the registration.
    pub(super) is_accepted: bool,
}

impl Dialler {
    /// Runs sessions until the workload is stopped. An error is the reason why the requested end of the registration
    /// failed.
    pub(super) async fn dial(mut self) -> Result<(), String> {
        let mut pace = Backoff::default();
        let parted = loop {
            let Err(SessionEnd { why, is_refused, after }) = self.session(&mut pace).await else { break Ok(()) };
            let pause = after.min(LATEST_DIAL).max(pace.next());
            let told = why.clone();
            let connection = if is_refused {
                ConnectionState::Refused { why: told }
            } else {
                ConnectionState::Dialling { why: told }
            };
            tracing::info!(workload = self.hello.workload, ?connection, "session with the replica lost");
            self.connection.send_replace(connection);
            if !self.pauses(pause).await {
                break Err(why);
            }
        };
        let parted = parted.map_err(|why| self.not_taken_back(&why));
        self.desk.flush().await;
        self.connection.send_replace(ConnectionState::Stopped);
        parted
    }

    fn not_taken_back(&self, why: &str) -> String {
        if self.is_accepted {
            return format!("the registration was not taken back: {why}");
        }
        format!(
            "the workload was not connected, so nothing was taken back: {why}; the registration of an earlier run, if \
             there is one, stays"
        )
    }

    /// Waits for the next connection. False if the workload is stopped, and has no outcome to deliver.
    async fn pauses(&mut self, pause: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            () = sleep(pause) => return true,
        }
        if self.settles() {
            sleep(pause.min(SETTLE_PAUSE)).await;
        }
        self.settles()
    }

    /// Whether outcomes are to be delivered after the stop.
    fn settles(&mut self) -> bool {
        if !self.stop.is_cancelled() || !self.desk.has_unsettled() {
            return false;
        }
        let until = *self.settles_until.get_or_insert_with(|| Instant::now() + SETTLES_WITHIN);
        Instant::now() < until
    }

    /// One session. `Ok`: the workload was stopped.
    async fn session(&mut self, pace: &mut Backoff) -> Result<(), SessionEnd> {
        let (say, said) = mpsc::channel(16);
        let known = self.desk.known();
        // the first message has the outcomes of these attempts
        let told = known.iter().filter(|known| known.outcome.is_some()).map(|known| known.attempt.clone()).collect();
        let role = (*self.role.borrow_and_update()).into();
        let hello = Say::Hello(v1::Hello { role, known, ..self.hello.clone() });
        // the channel has space for one message
        let _ = say.try_send(v1::FromWorkload { message: Some(hello) });
        let settles = self.settles();
        let until = self.settles_until.filter(|_| settles).unwrap_or_else(|| Instant::now() + ANSWER_WITHIN);
        let opened = tokio::select! {
            opened = timeout_at(until, self.open(said)) => opened,
            () = self.stop.cancelled(), if !settles => return Err(SessionEnd::lost("it was stopped before there was a session")),
        };
        let (welcome, heard) = opened.unwrap_or_else(|_| Err(SessionEnd::lost("the replica does not answer")))?;
        pace.reset();
        self.is_accepted = true;
        let problems: Vec<_> = welcome.problems.into_iter().map(told_problem).collect();
        for problem in &problems {
            tracing::warn!(workload = self.hello.workload, problem, "registration warning received");
        }
        for attempt in welcome.acknowledged {
            self.desk.acknowledge(attempt);
        }
        self.connection.send_replace(ConnectionState::Connected { vm: welcome.vm, problems });
        let lease = Duration::from_millis(welcome.lease_ms.clamp(LEASES.0, LEASES.1));
        let talk = Talk { say, heard, told, lease, at: Instant::now(), progress_at: Instant::now() };
        self.talk(talk).await
    }

    async fn open(
        &self,
        said: mpsc::Receiver<v1::FromWorkload>,
    ) -> Result<(v1::Welcome, Streaming<v1::ToWorkload>), SessionEnd> {
        let unreachable = |error: tonic::transport::Error| {
            SessionEnd::lost(format!("no replica answers at {}: {error}", self.socket.display()))
        };
        let endpoint = Endpoint::from_shared(format!("unix://{}", self.socket.display())).map_err(unreachable)?;
        let channel: Channel = endpoint.connect().await.map_err(unreachable)?;
        let mut client = WorkloadsClient::new(channel).max_decoding_message_size(LARGEST);
        let mut heard = client.session(ReceiverStream::new(said)).await?.into_inner();
        match heard.message().await?.and_then(|first| first.message) {
            Some(Heard::Welcome(welcome)) => Ok((welcome, heard)),
            Some(Heard::GoAway(away)) => Err(SessionEnd::away(&away)),
            _ => Err(SessionEnd::lost("the replica did not begin with a welcome")),
        }
    }

    async fn talk(&mut self, mut talk: Talk) -> Result<(), SessionEnd> {
        let beat = talk.lease / 3;
        let mut beats = interval_at(Instant::now() + beat, beat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let as_before = v1::Role::Unspecified;
        let mut parts = false;
        loop {
            let settles_until = self.settles_until.unwrap_or_else(Instant::now);
            tokio::select! {
                biased;
                () = self.stop.cancelled(), if !parts => parts = true,
                heard = talk.heard.message() => {
                    let heard = heard?.ok_or_else(|| SessionEnd::lost("the replica ended the session"))?;
                    talk.at = Instant::now();
                    self.take(heard, &mut talk).await?;
                }
                Ok(()) = self.role.changed() => {
                    let role = *self.role.borrow_and_update();
                    talk.beat(role).await?;
                }
                _ = beats.tick() => {
                    if talk.at.elapsed() >= talk.lease {
                        return Err(SessionEnd::lost("the replica has been silent for the whole lease"));
                    }
                    // outcomes without an acknowledgement by now are sent once more
                    talk.told.drain(..REPEATED.min(talk.told.len()));
                    talk.beat(as_before).await?;
                }
                () = self.desk.news.notified() => {}
                () = sleep_until(talk.progress_at), if self.desk.has_something_to_say() => {}
                () = sleep_until(settles_until), if parts => {}
            }
            talk.report(&self.desk).await?;
            if parts && !self.settles() {
                return talk.part(self.unregister.is_cancelled()).await;
            }
        }
    }

    async fn take(&self, heard: v1::ToWorkload, talk: &mut Talk) -> Result<(), SessionEnd> {
        match heard.message {
            Some(Heard::Step(step)) => self.step(step, talk).await?,
            Some(Heard::Cancel(cancel)) => {
                if let Some(controls) = self.desk.controls(&cancel.attempt) {
                    tracing::info!(cancel.attempt, cancel.reason, "step cancelled");
                    controls.cancel.cancel();
                }
            }
            Some(Heard::Deadline(deadline)) => {
                if let Some(controls) = self.desk.controls(&deadline.attempt) {
                    controls.set_time_left(deadline.time_left_ms);
                }
            }
            Some(Heard::Acknowledged(acknowledged)) => self.desk.acknowledge(acknowledged.attempt),
            Some(Heard::GoAway(away)) => return Err(SessionEnd::away(&away)),
            Some(Heard::Problem(problem)) => {
                let problem = told_problem(problem);
                tracing::warn!(workload = self.hello.workload, problem, "problem reported by the replica");
            }
            // `None` is a message of a newer replica
            Some(Heard::Welcome(_) | Heard::Event(_) | Heard::Pong(_)) | None => {}
        }
        Ok(())
    }

    async fn step(&self, step: v1::Step, talk: &mut Talk) -> Result<(), SessionEnd> {
        let ids = [&step.attempt, &step.step];
        if ids.iter().any(|id| id.is_empty() || id.len() > LONGEST_ID) {
            tracing::warn!("step without a valid id received");
            return Ok(());
        }
        let attempt = step.attempt.clone();
        let Some(act) = Act::of(&step) else {
            let why = "this workload does not know what the replica asks for; is the replica newer?";
            return talk.outcome(attempt, &Outcome::Failed(why.into())).await;
        };
        if self.stop.is_cancelled() && !self.desk.knows(&attempt) {
            return talk.outcome(attempt, &Outcome::Blocked("the workload is stopping".into())).await;
        }
        match self.desk.receive(&step, act) {
            Ok(Some(controls)) => {
                let (desk, hooks) = (self.desk.clone(), self.hooks.clone());
                tokio::spawn(carry_out(desk, hooks, step, act, controls));
            }
            Ok(None) => talk.told.retain(|told| *told != attempt),
            Err(outcome) => talk.outcome(attempt, &outcome).await?,
        }
        Ok(())
    }
}

/// The text of a problem, after its place.
fn told_problem(problem: v1::Problem) -> String {
    match problem.place.filter(|place| !place.is_empty()) {
        Some(place) => format!("{place}: {}", problem.message),
        None => problem.message,
    }
}
