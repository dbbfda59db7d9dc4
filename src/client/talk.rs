//! One connected session: the messages to the replica, and what the workload has sent so far.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tonic::Streaming;

use super::outcome::Outcome;
use super::session::ANSWER_WITHIN;
use super::session_end::SessionEnd;
use super::tracker::AttemptTracker;
use allclear_wire::pb::allclear::workload::v1;
use allclear_wire::pb::allclear::workload::v1::from_workload::Message as Say;
use allclear_wire::pb::allclear::workload::v1::to_workload::Message as Heard;

/// Minimum interval between progress reports of running handlers.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// A goodbye without a request to unregister gets no answer, and need not be waited for.
const PARTS_WITHIN: Duration = Duration::from_secs(1);

/// A session after its welcome.
pub(super) struct Talk {
    pub(super) say: mpsc::Sender<v1::FromWorkload>,
    pub(super) heard: Streaming<v1::ToWorkload>,
    /// Attempts whose outcome was sent in this session and need not be sent again yet, the earliest first.
    pub(super) told: VecDeque<String>,
    pub(super) lease: Duration,
    /// Time of the last message of the replica.
    pub(super) at: Instant,
    /// Time from which progress may be sent again.
    pub(super) progress_at: Instant,
}

impl Talk {
    async fn say(&self, message: Say) -> Result<(), SessionEnd> {
        let message = v1::FromWorkload { message: Some(message) };
        match timeout(self.lease, self.say.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(SessionEnd::lost("the replica ended the session")),
            Err(_) => Err(SessionEnd::lost("the replica takes nothing any more")),
        }
    }

    pub(super) async fn beat(&self, role: v1::Role) -> Result<(), SessionEnd> {
        self.say(Say::Heartbeat(v1::Heartbeat { role: role.into() })).await
    }

    pub(super) async fn outcome(&self, attempt: String, outcome: &Outcome) -> Result<(), SessionEnd> {
        let news = Some(v1::report::News::Outcome(outcome.told()));
        self.say(Say::Report(v1::Report { attempt, news })).await
    }

    pub(super) async fn report(&mut self, desk: &AttemptTracker) -> Result<(), SessionEnd> {
        let now = Instant::now();
        let may_progress = now >= self.progress_at;
        let due = desk.due(&mut self.told, may_progress);
        if due.iter().any(|report| !matches!(report.news, Some(v1::report::News::Outcome(_)))) {
            self.progress_at = now + PROGRESS_EVERY;
        }
        for report in due {
            self.say(Say::Report(report)).await?;
        }
        Ok(())
    }

    /// Sends a goodbye, and waits until the replica has received the goodbye, or has answered with a refusal. Only a clean
    /// end is a consent: a replica that stops sends the workload away instead.
    pub(super) async fn part(mut self, unregister: bool) -> Result<(), SessionEnd> {
        self.say(Say::Goodbye(v1::Goodbye { unregister })).await?;
        drop(self.say);
        let rest = async {
            while let Some(heard) = self.heard.message().await? {
                if let Some(Heard::GoAway(away)) = heard.message {
                    return Err(SessionEnd::away(&away));
                }
            }
            Ok(())
        };
        match timeout(if unregister { ANSWER_WITHIN } else { PARTS_WITHIN }, rest).await {
            Ok(answer) => answer,
            Err(_) if unregister => Err(SessionEnd::lost("the replica does not answer")),
            Err(_) => Ok(()),
        }
    }
}
