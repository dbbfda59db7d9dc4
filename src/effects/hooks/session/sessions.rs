//! The table of session workloads, for workloads and for the replica.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::SessionRegistration;
use super::attempt::{Reach, SessionAttempt};
use super::seat::Session;
use crate::hooks::{AttemptState, HookOutcome, HookReport, HookUpdate, Wall};
use allclear_core::model::id::WorkloadName;
use allclear_core::model::workload::OnAbsent;

const REPORTS: usize = 1024;

/// Must be created and used inside a tokio runtime. No call blocks.
///
/// The calls for workloads are in `heard`, the calls for the replica in `given`.
pub struct Sessions {
    pub(super) shared: Arc<SessionsInner>,
    timer: AbortHandle,
}

pub(super) struct SessionsInner {
    /// Never held while waiting.
    book: Mutex<SessionTable>,
    /// The next due time may be earlier than before.
    pub(super) is_sooner: Notify,
}

/// The registered workloads and their attempts.
pub(super) struct SessionTable {
    pub(super) seats: BTreeMap<WorkloadName, Session>,
    pub(super) attempts: BTreeMap<String, SessionAttempt>,
    /// Names of registrations that are being committed to the log.
    pub(super) opening: BTreeSet<WorkloadName>,
    pub(super) reports: mpsc::Sender<HookReport>,
    pub(super) wall: Wall,
    /// Signals a change of connected workloads, of their roles, or of reported attempts that this replica has not
    /// adopted.
    pub(super) changes: watch::Sender<()>,
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.timer.abort();
    }
}

impl Sessions {
    /// Opens the table. `wall` is this machine's wall clock, for showing the expected end of an attempt.
    pub fn open(wall: Wall) -> (Self, mpsc::Receiver<HookReport>) {
        let (reports, receiver) = mpsc::channel(REPORTS);
        let book = Mutex::new(SessionTable {
            seats: BTreeMap::new(),
            attempts: BTreeMap::new(),
            opening: BTreeSet::new(),
            reports,
            wall,
            changes: watch::Sender::new(()),
        });
        let shared = Arc::new(SessionsInner { book, is_sooner: Notify::new() });
        let timer = tokio::spawn(keep_time(shared.clone())).abort_handle();
        (Self { shared, timer }, receiver)
    }

    pub fn is_seated(&self, name: &WorkloadName) -> bool {
        self.shared.book().seats.contains_key(name)
    }

    pub fn presences(&self) -> Vec<SessionRegistration> {
        self.shared.book().seats.values().map(Session::presence).collect()
    }

    /// Changes whenever `presences` or `claims` do.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.shared.book().changes.subscribe()
    }
}

impl SessionsInner {
    /// Locks the table for reading.
    pub(super) fn book(&self) -> MutexGuard<'_, SessionTable> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the table for a change, after which the next due time may be earlier.
    pub(super) fn change(&self) -> MutexGuard<'_, SessionTable> {
        let book = self.book();
        self.is_sooner.notify_one();
        book
    }
}

async fn keep_time(shared: Arc<SessionsInner>) {
    loop {
        let next = shared.book().next_due();
        tokio::select! {
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => shared.book().pass(Instant::now()),
            () = shared.is_sooner.notified() => {}
        }
    }
}

impl SessionTable {
    /// Handles expired leases, registrations and attempts.
    fn pass(&mut self, now: Instant) {
        let lapsed: Vec<_> =
            self.seats.iter_mut().filter_map(|(name, seat)| Some((name.clone(), seat.expire_lease(now)?))).collect();
        for (name, why) in &lapsed {
            self.on_session_lost(name, why);
        }
        let expired = self.seats.values_mut().filter_map(|seat| seat.expire(now).then_some(())).count();
        if !lapsed.is_empty() || expired > 0 {
            self.changes.send_replace(());
        }
        for (key, attempt) in self.attempts.iter_mut().filter(|(_, attempt)| attempt.is_running()) {
            tell_progress(&self.reports, key, attempt, now);
            let is_live = self.seats.get(&attempt.task.workload).is_some_and(Session::is_live);
            if let Some(ended) = attempt.overdue(now, is_live) {
                end(&self.reports, key, attempt, ended);
            } else if attempt.has_reached_its_deadline(now) {
                if attempt.reach == Reach::Unsent {
                    let reason = format!("the workload {} did not connect in time", attempt.task.workload);
                    end(&self.reports, key, attempt, HookOutcome::Blocked(reason));
                } else {
                    stop(&mut self.seats, attempt, now, true);
                }
            }
        }
    }

    /// The next time at which `pass` has work.
    fn next_due(&self) -> Option<Instant> {
        let seats = self.seats.values().filter_map(Session::next_due);
        seats.chain(self.attempts.values().filter_map(SessionAttempt::next_due)).min()
    }

    /// Handles a lost session. Unsent attempts wait for the workload, unless its absence is handled otherwise.
    pub(super) fn on_session_lost(&mut self, name: &WorkloadName, why: &str) {
        let waits = self.seats.get(name).is_some_and(|seat| seat.greeting.workload.on_absent == OnAbsent::Hold);
        let its_own =
            self.attempts.iter_mut().filter(|(_, attempt)| attempt.is_running() && attempt.task.workload == *name);
        for (key, attempt) in its_own {
            match attempt.reach {
                Reach::Unsent if waits => {}
                Reach::Unsent => end(&self.reports, key, attempt, not_connected(name)),
                Reach::Inherited | Reach::Sent => end(&self.reports, key, attempt, HookOutcome::Lost(why.to_owned())),
            }
        }
    }
}

pub(super) fn not_known(name: &WorkloadName) -> HookOutcome {
    HookOutcome::Lost(format!("{name} does not know the attempt, so it is unknown whether the attempt was started"))
}

pub(super) fn not_connected(name: &WorkloadName) -> HookOutcome {
    HookOutcome::Blocked(format!("{name} is not connected"))
}

pub(super) fn send(seat: &mut Session, attempt: &mut SessionAttempt) {
    if seat.tell(attempt.step()) {
        attempt.reach = Reach::Sent;
        attempt.progress.is_over("sent to the workload");
    }
}

pub(super) fn stop(
    seats: &mut BTreeMap<WorkloadName, Session>,
    attempt: &mut SessionAttempt,
    now: Instant,
    by_deadline: bool,
) {
    if attempt.stop(now, by_deadline)
        && let Some(seat) = seats.get_mut(&attempt.task.workload)
    {
        seat.tell(attempt.reminder());
    }
}

pub(super) fn end(reports: &mpsc::Sender<HookReport>, key: &str, attempt: &mut SessionAttempt, ended: HookOutcome) {
    attempt.state = AttemptState::Ended(ended.clone());
    tell(reports, key, HookUpdate::Ended(ended));
}

pub(super) fn tell_progress(reports: &mpsc::Sender<HookReport>, key: &str, attempt: &mut SessionAttempt, now: Instant) {
    if let Some((text, expected_end)) = attempt.progress.take(now) {
        tell(reports, key, HookUpdate::Progress { text: Some(text), expected_end });
    }
}

/// A report dropped for lack of space is found when the attempt is requested again.
pub(super) fn tell(reports: &mpsc::Sender<HookReport>, key: &str, news: HookUpdate) {
    let _ = reports.try_send(HookReport { attempt: key.to_owned(), news });
}
