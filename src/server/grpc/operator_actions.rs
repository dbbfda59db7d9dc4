//! An operator's requests about events: checked, proposed as one entry with the operator and the reason, and answered
//! in words.

use allclear_core::schedule::failure;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tonic::Status;

use super::hook_selection::hook_named;
use super::refusal::{not_selected, refusal, refused, unknown};
use crate::replica::clock::from_rfc3339;
use crate::replica::cluster::ClusterHandle;
use crate::replica::input_source::InputSource;
use crate::replica::isolated_requests::IsolatedRequests;
use crate::replica::view::View;
use allclear_core::isolation::unaware_replicas::unaware_replicas;
use allclear_core::model::command::{ApplyResult, Command, RequestAction};
use allclear_core::model::event::Event;
use allclear_core::model::event_lookup::NotSelected;
use allclear_core::model::hook_id::HookId;
use allclear_core::model::id::EventId;
use allclear_core::model::operator::{OperatorAction, OperatorRequest};
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::Member;
use allclear_wire::pb::allclear::operator::v1 as shown;
use allclear_wire::pb::allclear::operator::v1::end::When;

/// The limit for a reason, which is kept as long as the event.
const MAX_REASON_BYTES: usize = 500;
/// The limit for an id; no platform has longer ids.
const MAX_ID_BYTES: usize = 256;
/// The time limit of the waits for a leader and for the cluster time. After it the request is rejected.
const QUORUM_WITHIN: Duration = Duration::from_secs(3);
/// The time limit for every voter's acknowledgement: several status reports.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(3);
/// The number of proposals of a request before the answer "unclear".
const TRIES: usize = 3;
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// The time limit for recording an action that is carried out outside of the log, and does not wait for the record.
const NOTED_WITHIN: Duration = Duration::from_secs(2);

/// One operator's call.
pub(super) struct OperatorCall<'a> {
    pub(super) cluster: &'a ClusterHandle,
    pub(super) inputs: &'a InputSource,
    pub(super) isolated_requests: &'a IsolatedRequests,
    pub(super) view: &'a View,
    pub(super) who: String,
}

impl OperatorCall<'_> {
    /// Records an action that is carried out outside of the log. Without a quorum such an action fails by itself with
    /// an error.
    pub(super) async fn record(&self, what: String, why: Option<String>) -> Result<(), Status> {
        let reason = why.map_or_else(|| Ok(String::new()), |why| reason(&why))?;
        if self.cluster.consensus.status_now().has_leader() {
            let command = Command::RequestAction(RequestAction {
                what: OperatorRequest::ClusterChange { what },
                who: self.who.clone(),
                reason,
            });
            if !matches!(timeout(NOTED_WITHIN, self.cluster.propose(&command)).await, Ok(Ok(_))) {
                tracing::warn!(who = self.who, "operator request not recorded in the log");
            }
        }
        Ok(())
    }

    /// Proposes the request, and returns when the request is in force and applied on this replica.
    pub(super) async fn ask(&self, what: OperatorRequest, reason: String) -> Result<(), Status> {
        self.wait_for_quorum().await?;
        tracing::info!(who = self.who, what = what.as_str(), reason, "operator request received");
        let command = Command::RequestAction(RequestAction { what: what.clone(), who: self.who.clone(), reason });
        let (verdict, tries) = self.propose(&command).await?;
        let caught_up = self.catch_up_with_patience().await;
        match verdict {
            // The first proposal was committed; only its reply was lost.
            ApplyResult::Rejected(_) if tries > 1 && is_fulfilled(&self.cluster.state(), &what) => Ok(()),
            ApplyResult::Applied => caught_up
                .map_err(|_| Status::aborted("the request is in force, but this replica has lost the quorum since")),
            ApplyResult::Rejected(why) => Err(refusal(&self.cluster.state(), &what, why)),
        }
    }

    /// Proposes a request about one hook of an event. Returns the full name of the hook, and the event.
    pub(super) async fn ask_about_hook(
        &self,
        event: &str,
        hook: &str,
        why: &str,
        request: impl FnOnce(EventId, Member, HookId) -> OperatorRequest,
    ) -> Result<(String, shown::Event), Status> {
        let (event, reason) = (self.event(event)?, reason(why)?);
        self.catch_up().await?;
        let state = self.cluster.state();
        let known = state.open_event(&event).ok_or_else(|| unknown(&state, &event))?;
        let (name, step) = hook_named(&state, known, hook)?;
        self.ask(request(event.clone(), step.member, step.id), reason).await?;
        Ok((name, self.shown(&event)?))
    }

    /// The requests about the event that its last hold has taken back, in words.
    pub(super) fn taken_back(&self, event: &EventId) -> Vec<String> {
        let state = self.cluster.state();
        let of_event = state.open_event(event).into_iter().flat_map(Event::taken_back);
        let in_words = of_event.map(|record| match record.what {
            OperatorAction::Approve { .. } => format!("the approval by {}", record.who),
            _ => format!("the early preparation that {} asked for", record.who),
        });
        in_words.collect()
    }

    /// Proposes the command, and repeats after the loss of a leader that may have accepted the command: a
    /// repeated request does no harm.
    async fn propose(&self, command: &Command) -> Result<(ApplyResult, usize), Status> {
        let mut tries = 1;
        loop {
            match self.cluster.propose(command).await {
                Ok(verdict) => return Ok((verdict, tries)),
                Err(error) if error.is_refusal() || tries == TRIES => {
                    return Err(refused(&error, error.is_refusal() && tries == 1));
                }
                Err(_) => tries += 1,
            }
        }
    }

    /// Catches up, and waits for a quorum that is lost for a moment: the request is in force by now.
    async fn catch_up_with_patience(&self) -> Result<(), Status> {
        let mut caught_up = self.catch_up().await;
        for _ in 1..TRIES {
            if caught_up.is_ok() || !self.cluster.wait_for_leader(QUORUM_WITHIN).await {
                break;
            }
            caught_up = self.catch_up().await;
        }
        caught_up
    }

    pub(super) async fn wait_for_quorum(&self) -> Result<(), Status> {
        if self.cluster.wait_for_leader(QUORUM_WITHIN).await {
            return Ok(());
        }
        Err(Status::failed_precondition(
            "there is no quorum, because too few replicas reach each other, so nothing was changed; bring replicas or \
             the network back, or ask a replica of the side with a quorum; `allclear explain EVENT` shows whether an \
             operator may approve an event on this replica alone",
        ))
    }

    /// Waits until all entries committed by now are applied here.
    pub(super) async fn catch_up(&self) -> Result<(), Status> {
        let confirmed = self.cluster.consensus.ensure_linearizable().await;
        confirmed.map(drop).map_err(|error| Status::failed_precondition(error.to_string()))
    }

    /// Waits a limited time until every voter knows all operator requests that this replica knows.
    pub(super) async fn wait_for_everybody(&self) {
        let number = self.cluster.state().operator_seq;
        let know = async {
            while !unaware_replicas(&self.cluster.state(), &self.inputs.planning_input(), number).is_empty() {
                sleep(LOOK_AGAIN).await;
            }
        };
        // The answer names the voters that do not know by then.
        let _ = timeout(ACKNOWLEDGED_WITHIN, know).await;
    }

    /// The id of the selected event. An id that is unknown here may be known to the leader.
    pub(super) fn event(&self, given: &str) -> Result<EventId, Status> {
        let fits = (1..=MAX_ID_BYTES).contains(&given.len()) && !given.chars().any(char::is_control);
        if !fits {
            return Err(Status::invalid_argument(format!("event: {given:?} is not the id of an event")));
        }
        match self.view.state().select_event(given) {
            Ok(event) => Ok(event.announcement.id.clone()),
            Err(NotSelected::Unknown { .. }) => Ok(EventId::new(given)),
            Err(several @ NotSelected::Ambiguous { .. }) => Err(not_selected(&several)),
        }
    }

    pub(super) fn shown(&self, event: &EventId) -> Result<shown::Event, Status> {
        self.view.event(event.as_str()).ok_or_else(|| unknown(&self.cluster.state(), event))
    }

    /// The end of a request. A duration is counted in the cluster's time.
    pub(super) async fn end(&self, end: Option<shown::End>) -> Result<Timestamp, Status> {
        let missing = || Status::invalid_argument("the end is missing: give a time or a duration, with --until");
        match end.and_then(|end| end.when).ok_or_else(missing)? {
            When::AfterMs(span) => {
                self.wait_for_quorum().await?;
                self.wait_for_the_time().await?;
                Ok(self.cluster.time.now().plus(Duration::from_millis(span)))
            }
            When::At(text) => from_rfc3339(&text)
                .ok_or_else(|| Status::invalid_argument(format!("at: {text:?} is not a time in RFC 3339"))),
        }
    }

    /// Waits for the cluster time: a replica that has just started, or follows a new leader, receives the time soon.
    async fn wait_for_the_time(&self) -> Result<(), Status> {
        let is_told = async {
            while !self.cluster.has_cluster_time() {
                sleep(LOOK_AGAIN).await;
            }
        };
        let message = "the cluster has not agreed on its time yet; try again in a moment, or give the end as a time";
        timeout(QUORUM_WITHIN, is_told).await.map_err(|_| Status::failed_precondition(message))
    }
}

fn is_fulfilled(state: &State, what: &OperatorRequest) -> bool {
    match what {
        OperatorRequest::Approve { event, .. } => state.event(event).is_some_and(Event::is_approved_by_operator),
        OperatorRequest::Skip { event, member, hook } => {
            state.event(event).is_some_and(|event| event.is_skipped(member, *hook))
        }
        OperatorRequest::Prepare { event, from } => {
            state.event(event).is_some_and(|event| event.asked_to_prepare_from().is_some_and(|at| at >= *from))
        }
        OperatorRequest::Retry { event, member, hook } => state.event(event).is_some_and(|event| {
            let still_fails = failure::is_holding_by(state, event, member, *hook, state.now);
            event.retried_after(member, *hook).is_some() && !still_fails
        }),
        OperatorRequest::Release { event } => state.event(event).is_some_and(|event| event.hold(state.now).is_none()),
        OperatorRequest::Restored { member } => !state.slots.contains_key(member),
        OperatorRequest::Resume => state.pause(state.now).is_none(),
        OperatorRequest::Hold { .. } | OperatorRequest::Pause { .. } | OperatorRequest::ClusterChange { .. } => false,
    }
}

pub(super) fn reason(given: &str) -> Result<String, Status> {
    let given = given.trim();
    let fits = (1..=MAX_REASON_BYTES).contains(&given.len()) && !given.chars().any(char::is_control);
    let message = || {
        format!("the reason is missing or not allowed: give 1 to {MAX_REASON_BYTES} bytes on one line with --reason")
    };
    if fits { Ok(given.into()) } else { Err(Status::invalid_argument(message())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_a_line_of_bounded_length() {
        assert_eq!(reason(" backup runs ").unwrap(), "backup runs");
        for bad in ["", "  ", "two\nlines", "\u{1b}[2J", &"a".repeat(501)] {
            assert!(reason(bad).is_err(), "{bad:?}");
        }
    }
}
