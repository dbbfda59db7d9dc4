//! Messages of session workloads: connect, heartbeat, attempts, and leave.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::attempt::Reach;
use super::seat::Session;
use super::sessions::{SessionTable, Sessions, SessionsInner, end, not_known, send, tell, tell_progress};
use super::{FromWorkload, Hello, MAX_UNREAD, RegistrationError, SessionClosed, SessionToken, ToWorkload};
use crate::hooks::{AttemptState, HookOutcome, HookUpdate};
use crate::secrets::Secrets;
use allclear_core::model::id::WorkloadName;
use allclear_core::model::state::WORKLOAD_LIMIT;
use allclear_core::model::workload::Role;

/// A name reserved while its registration is being committed to the log.
pub struct Reservation {
    shared: Arc<SessionsInner>,
    name: WorkloadName,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shared.book().opening.remove(&self.name);
    }
}

impl Sessions {
    pub fn reserve(&self, name: &WorkloadName, begun: &str) -> Result<Reservation, RegistrationError> {
        let mut book = self.shared.book();
        let is_free = book.seats.get(name).is_none_or(|seat| seat.gives_way_to(begun));
        if !is_free || book.opening.contains(name) {
            return Err(RegistrationError::Taken(name.clone()));
        }
        let others = book.opening.iter().filter(|name| !book.seats.contains_key(*name)).count();
        if !book.seats.contains_key(name) && book.seats.len() + others >= WORKLOAD_LIMIT {
            return Err(RegistrationError::Full);
        }
        book.opening.insert(name.clone());
        Ok(Reservation { shared: self.shared.clone(), name: name.clone() })
    }

    /// Opens a session for a workload, continues its attempts, and returns the channel of messages to the workload. The
    /// channel closes with the session.
    pub fn admit(&self, reserved: &Reservation, greeting: Hello) -> (SessionToken, mpsc::Receiver<ToWorkload>) {
        let (line, told) = mpsc::channel(MAX_UNREAD);
        let (name, token, now) = (&reserved.name, token(), Instant::now());
        let mut book = self.shared.change();
        let SessionTable { seats, attempts, reports, changes, .. } = &mut *book;
        if let Some(earlier) = seats.get_mut(name) {
            earlier.end("another session of this workload replaced this session");
        }
        let mut seat = Session::new(greeting, token.clone(), line, now);
        for (key, attempt) in attempts.iter_mut().filter(|(_, attempt)| attempt.task.workload == *name) {
            let claimed = seat.take_claim(key);
            if !attempt.is_running() {
                attempt.is_told_by_workload |= matches!(claimed, Some(AttemptState::Ended(_)));
                continue;
            }
            match (claimed, attempt.reach) {
                (Some(AttemptState::Ended(ended)), _) => {
                    attempt.is_told_by_workload = true;
                    let ended = attempt.as_it_was(ended, now);
                    end(reports, key, attempt, ended);
                }
                (Some(AttemptState::Running), _) => {
                    attempt.reach = Reach::Sent;
                    seat.tell(attempt.reminder());
                }
                (None, Reach::Unsent) => send(&mut seat, attempt),
                (None, Reach::Inherited | Reach::Sent) => end(reports, key, attempt, not_known(name)),
            }
        }
        seats.insert(name.clone(), seat);
        changes.send_replace(());
        (SessionToken { workload: name.clone(), token }, told)
    }

    /// Renews the lease at any message, and returns the lease.
    pub fn hear(&self, visit: &SessionToken, role: Option<Role>) -> Result<Duration, SessionClosed> {
        let mut book = self.shared.book();
        let seat = book.seat(visit)?;
        let before = seat.greeting.role;
        let lease = seat.hear(role);
        if seat.greeting.role != before {
            book.changes.send_replace(());
        }
        Ok(lease)
    }

    /// Whether an attempt of this workload was sent, or is to be sent.
    pub fn has_attempt(&self, workload: &WorkloadName, key: &str) -> bool {
        self.shared.book().attempts.get(key).is_some_and(|attempt| attempt.task.workload == *workload)
    }

    pub fn report(&self, visit: &SessionToken, key: &str, said: FromWorkload) -> Result<(), SessionClosed> {
        let (now, said) = (Instant::now(), said.without(&Secrets::of([visit.token.as_str()])));
        let mut book = self.shared.change();
        book.seat(visit)?.hear(None);
        let SessionTable { seats, attempts, reports, wall, changes, .. } = &mut *book;
        let Some(seat) = seats.get_mut(&visit.workload) else { return Err(SessionClosed) };
        let Some(attempt) = attempts.get_mut(key).filter(|attempt| attempt.task.workload == visit.workload) else {
            seat.claim(key, if let FromWorkload::Ended(ended) = said { Some(ended) } else { None });
            changes.send_replace(());
            return Ok(());
        };
        match said {
            // An outcome after the attempt's end is late, unless repeated by the workload.
            FromWorkload::Ended(ended) if !attempt.is_running() && !attempt.is_told_by_workload => {
                seat.claim(key, Some(ended));
                changes.send_replace(());
            }
            _ if !attempt.is_running() => {}
            FromWorkload::Ended(ended) => {
                attempt.is_told_by_workload = true;
                let ended = attempt.as_it_was(ended, now);
                end(reports, key, attempt, ended);
            }
            FromWorkload::Progress { text, expected_end_in } => {
                attempt.progress.news = Some((text, expected_end_in.map(|span| wall().plus(span))));
                tell_progress(reports, key, attempt, now);
            }
            FromWorkload::MoreTime(needs) if attempt.may_ask_for_time(now) => {
                tell(reports, key, HookUpdate::MoreTime { needs });
            }
            // The workload is sent its current deadline.
            FromWorkload::MoreTime(_) => _ = seat.tell(attempt.reminder()),
        }
        Ok(())
    }

    /// Ends the stream of a session. The lease continues.
    pub fn leave(&self, visit: &SessionToken) {
        if let Ok(seat) = self.shared.book().seat(visit) {
            seat.close_stream();
        }
    }

    /// Ends a session at the wish of its workload, which counts as disconnected from now on. The lease of its running
    /// attempts continues, so that the next process of the workload can go on with them.
    pub fn say_goodbye(&self, visit: &SessionToken) -> Result<(), SessionClosed> {
        let mut book = self.shared.book();
        book.seat(visit)?.say_goodbye();
        book.changes.send_replace(());
        Ok(())
    }

    /// Marks a registration for removal.
    pub fn mark_expired(&self, name: &WorkloadName) {
        let mut book = self.shared.book();
        if let Some(seat) = book.seats.get_mut(name) {
            seat.is_due_to_go = true;
        }
        book.changes.send_replace(());
    }

    /// Removes a session that was due for removal and is no longer in the log. A session that has connected again
    /// meanwhile stays.
    pub fn deregister(&self, name: &WorkloadName) {
        let mut book = self.shared.book();
        if book.seats.get(name).is_some_and(Session::may_go)
            && let Some(mut seat) = book.seats.remove(name)
        {
            seat.end("this workload is no longer registered");
            book.on_session_lost(name, "the workload was unregistered while the attempt ran");
        }
        book.changes.send_replace(());
    }

    /// Attempts reported by workloads and not adopted by this replica, with their outcomes.
    pub fn claims(&self) -> Vec<(WorkloadName, String, Option<HookOutcome>)> {
        let of = |(name, seat): (&WorkloadName, &Session)| {
            seat.claims().iter().map(|(key, ended)| (name.clone(), key.clone(), ended.clone())).collect::<Vec<_>>()
        };
        self.shared.book().seats.iter().flat_map(of).collect()
    }

    /// Dismisses a workload's report of an attempt without use in the cluster.
    pub fn dismiss_claim(&self, name: &WorkloadName, key: &str) {
        if let Some(seat) = self.shared.book().seats.get_mut(name) {
            seat.dismiss_claim(key, "the attempt is no longer needed");
        }
    }
}

impl SessionTable {
    fn seat(&mut self, visit: &SessionToken) -> Result<&mut Session, SessionClosed> {
        let seat = self.seats.get_mut(&visit.workload);
        seat.filter(|seat| seat.token == visit.token && seat.is_live()).ok_or(SessionClosed)
    }
}

/// A token that other permitted clients cannot guess.
fn token() -> String {
    // Each `RandomState` has keys of its own, chosen by the system.
    let part = || RandomState::new().hash_one(0);
    format!("{:016x}{:016x}", part(), part())
}
