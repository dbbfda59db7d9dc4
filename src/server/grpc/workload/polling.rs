//! Sessions of workloads that poll instead of a stream. Each session has a queue; `Poll` empties the queue.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as Lock, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;
use tonic::Status;

use super::stream::new_pace;
use super::{WorkloadRpc, hello, message};
use crate::hooks::session::{FromWorkload, SessionToken, ToWorkload};
use crate::net::limits::RateLimiter;
use crate::replica::attempt_key;
use crate::replica::metrics::{RefusalCounts, RefusalKind};
use allclear_core::model::id::WorkloadName;
use allclear_wire::pb::allclear::workload::v1 as pb;

/// The longest wait of a poll, which also ends after half of the lease.
const WAITS_AT_MOST: Duration = Duration::from_secs(30);
/// Messages of one answer.
const AT_ONCE: usize = 32;
/// The time limit for a report to be committed.
const COMMITTED_WITHIN: Duration = Duration::from_secs(10);

/// The queue of a session, drained by one poll at a time.
type Waiting = Arc<Mutex<mpsc::Receiver<ToWorkload>>>;

struct PollSession {
    visit: SessionToken,
    /// The registering user; polls of other users are rejected.
    uid: u32,
    told: Waiting,
    pace: RateLimiter,
}

/// One session per workload name, so the number of workloads bounds the number of sessions.
#[derive(Default)]
pub(super) struct PollSessions {
    lines: Lock<BTreeMap<WorkloadName, PollSession>>,
}

impl PollSessions {
    pub(super) fn keep(&self, visit: &SessionToken, uid: u32, told: mpsc::Receiver<ToWorkload>) {
        let line = PollSession { visit: visit.clone(), uid, told: Arc::new(Mutex::new(told)), pace: new_pace() };
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|_, line| line.told.try_lock().map_or(true, |told| !told.is_closed()));
        lines.insert(visit.workload.clone(), line);
    }

    /// The queue of this session; rejects other users and too many polls.
    fn of(&self, session: &str, uid: u32, refusals: &RefusalCounts) -> Result<(SessionToken, Waiting), Status> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let visit = SessionToken::parse(session).ok_or_else(over)?;
        let line = lines.get_mut(&visit.workload).filter(|line| line.visit == visit).ok_or_else(over)?;
        if line.uid != uid {
            refusals.note(RefusalKind::Session, &format!("uid {uid}"), None, &visit.workload.0);
            return Err(over());
        }
        if !line.pace.take() {
            return Err(Status::resource_exhausted("this session makes too many calls per second; call less often"));
        }
        Ok((visit, line.told.clone()))
    }

    fn forget(&self, visit: &SessionToken) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|_, line| line.visit != *visit);
    }
}

pub(super) fn say_goodbye(
    door: &WorkloadRpc,
    uid: u32,
    request: &pb::SayGoodbyeRequest,
) -> Result<pb::SayGoodbyeResponse, Status> {
    let (visit, _) = door.lines.of(&request.session, uid, &door.metrics.refusals)?;
    door.hooks.runner.sessions.say_goodbye(&visit).map_err(|_| over())?;
    door.lines.forget(&visit);
    Ok(pb::SayGoodbyeResponse {})
}

fn over() -> Status {
    Status::not_found("this session is over; register again")
}

pub(super) async fn poll(door: &WorkloadRpc, uid: u32, request: pb::PollRequest) -> Result<pb::PollResponse, Status> {
    let (visit, line) = door.lines.of(&request.session, uid, &door.metrics.refusals)?;
    let Some(role) = hello::role(request.role) else {
        return Err(Status::invalid_argument("role: this version does not know the value"));
    };
    let lease = door.hooks.runner.sessions.hear(&visit, role).map_err(|_| over())?;
    let Ok(mut told) = line.try_lock() else {
        return Err(Status::failed_precondition("another poll of this session is waiting already"));
    };
    let waits = Duration::from_millis(request.wait_ms).min(lease / 2).min(WAITS_AT_MOST);
    let first = tokio::select! {
        first = timeout(waits, told.recv()) => first,
        () = door.stop.cancelled() => return Err(Status::unavailable("this replica is stopping")),
    };
    // A closed queue means a closed session.
    let mut found: Vec<ToWorkload> = match first {
        Ok(first) => vec![first.ok_or_else(over)?],
        Err(_) => Vec::new(),
    };
    while found.len() < AT_ONCE
        && let Ok(next) = told.try_recv()
    {
        found.push(next);
    }
    // A session that was just closed still receives its last messages, so the result is ignored.
    let _ = door.hooks.runner.sessions.hear(&visit, None);
    let state = door.cluster.state();
    Ok(pb::PollResponse { messages: found.into_iter().map(|told| message::told(told, &state, &door.view)).collect() })
}

pub(super) async fn report(
    door: &WorkloadRpc,
    uid: u32,
    request: pb::ReportRequest,
) -> Result<pb::ReportResponse, Status> {
    let (visit, _) = door.lines.of(&request.session, uid, &door.metrics.refusals)?;
    let report = request.report.ok_or_else(|| Status::invalid_argument("report: the field is missing"))?;
    let wrong = |problem: pb::Problem| {
        Status::invalid_argument(format!("{}: {}", problem.place.unwrap_or_default(), problem.message))
    };
    let (attempt, said) = message::said(report, &visit.workload, door).map_err(wrong)?;
    let is_end = matches!(said, FromWorkload::Ended(_));
    door.hooks.runner.sessions.report(&visit, &attempt, said).map_err(|_| over())?;
    if !is_end {
        return Ok(pb::ReportResponse::default());
    }
    let mut state = door.cluster.committed.clone();
    let committed = timeout(COMMITTED_WITHIN, state.wait_for(|state| attempt_key::is_settled(state, &attempt))).await;
    let Ok(Ok(state)) = committed else { return Ok(pb::ReportResponse::default()) };
    Ok(pb::ReportResponse { committed: true, outcome: attempt_key::outcome_word(&state, &attempt) })
}
