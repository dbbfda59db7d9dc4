//! Who is registered and what each has to do: every rule of sessions, with the time as an argument.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::attempt::{Attempt, Reach};
use super::seat::Seat;
use super::{Greeting, Over, Presence, Refusal, Said, Told, Visit};
use crate::machine::id::WorkloadName;
use crate::machine::state::WORKLOAD_LIMIT;
use crate::machine::workload::{Condition, OnAbsent, Role, Workload};
use crate::workloads::{Ended, News, Report, Standing, Wall};

pub(super) struct Book {
    pub(super) seats: BTreeMap<WorkloadName, Seat>,
    pub(super) attempts: BTreeMap<String, Attempt>,
    /// Names whose registration is on its way into the log.
    opening: BTreeSet<WorkloadName>,
    pub(super) reports: mpsc::Sender<Report>,
    pub(super) wall: Wall,
}

impl Book {
    pub(super) fn new(reports: mpsc::Sender<Report>, wall: Wall) -> Self {
        Self { seats: BTreeMap::new(), attempts: BTreeMap::new(), opening: BTreeSet::new(), reports, wall }
    }

    /// Those that the log knows and nobody here has seen: until they come or their time is over, they are not gone.
    /// True when there were any.
    pub(super) fn expect<'a>(
        &mut self,
        known: impl IntoIterator<Item = (&'a Workload, Condition)>,
        now: Instant,
    ) -> bool {
        let before = self.seats.len();
        for (workload, condition) in known {
            if !self.seats.contains_key(&workload.name) && !self.opening.contains(&workload.name) {
                self.seats.insert(workload.name.clone(), Seat::expected(workload.clone(), condition, now));
            }
        }
        self.seats.len() > before
    }

    pub(super) fn reserve(&mut self, name: &WorkloadName, boot: &str) -> Result<(), Refusal> {
        let is_free = self.seats.get(name).is_none_or(|seat| seat.gives_way_to(boot));
        if !is_free || self.opening.contains(name) {
            return Err(Refusal::Taken(name.clone()));
        }
        let others = self.opening.iter().filter(|name| !self.seats.contains_key(*name)).count();
        if !self.seats.contains_key(name) && self.seats.len() + others >= WORKLOAD_LIMIT {
            return Err(Refusal::Full);
        }
        self.opening.insert(name.clone());
        Ok(())
    }

    pub(super) fn release(&mut self, name: &WorkloadName) {
        self.opening.remove(name);
    }

    /// Seats a workload whose name is reserved, and goes on where it was.
    pub(super) fn admit(&mut self, greeting: Greeting, token: String, line: mpsc::Sender<Told>, now: Instant) {
        let name = greeting.workload.name.clone();
        if let Some(earlier) = self.seats.get_mut(&name) {
            earlier.end("another session of this workload took over");
        }
        let mut seat = Seat::new(greeting, token, line, now);
        for (key, attempt) in self.attempts.iter_mut().filter(|(_, attempt)| *attempt.workload() == name) {
            let claimed = seat.take_claim(key);
            if !attempt.is_running() {
                attempt.is_told_by_workload |= matches!(claimed, Some(Standing::Ended(_)));
                continue;
            }
            match (claimed, attempt.reach) {
                (Some(Standing::Ended(ended)), _) => {
                    attempt.is_told_by_workload = true;
                    let ended = attempt.as_it_was(ended, now);
                    end(&self.reports, key, attempt, ended);
                }
                (Some(Standing::Running), _) => {
                    attempt.reach = Reach::Sent;
                    seat.tell(attempt.reminder());
                }
                (None, Reach::Unsent) => send(&mut seat, attempt),
                (None, Reach::Inherited | Reach::Sent) => end(&self.reports, key, attempt, not_known(&name)),
            }
        }
        self.seats.insert(name, seat);
    }

    fn seat(&mut self, visit: &Visit) -> Result<&mut Seat, Over> {
        let seat = self.seats.get_mut(&visit.workload);
        seat.filter(|seat| seat.token == visit.token && seat.is_live()).ok_or(Over)
    }

    /// Any message keeps the lease, which is returned. True when its role is another one now.
    pub(super) fn hear(
        &mut self,
        visit: &Visit,
        role: Option<Role>,
        now: Instant,
    ) -> Result<(std::time::Duration, bool), Over> {
        let seat = self.seat(visit)?;
        seat.hear(now);
        let is_news = role.is_some_and(|role| role != seat.role);
        seat.role = role.unwrap_or(seat.role);
        Ok((seat.lease(), is_news))
    }

    /// The stream has ended. The lease goes on.
    pub(super) fn leave(&mut self, visit: &Visit) {
        if let Ok(seat) = self.seat(visit) {
            seat.hang_up();
        }
    }

    /// Its registration is to be taken back.
    pub(super) fn let_go(&mut self, name: &WorkloadName) {
        if let Some(seat) = self.seats.get_mut(name) {
            seat.let_go();
        }
    }

    /// The log does not know it any more. One that has come back meanwhile stays.
    pub(super) fn take_off(&mut self, name: &WorkloadName) {
        if self.seats.get(name).is_some_and(Seat::may_go)
            && let Some(mut seat) = self.seats.remove(name)
        {
            seat.end("this workload is not registered any more");
            self.vanish(name, "its workload was unregistered while it ran");
        }
    }

    pub(super) fn is_seated(&self, name: &WorkloadName) -> bool {
        self.seats.contains_key(name)
    }

    pub(super) fn presences(&self) -> Vec<Presence> {
        self.seats.values().map(Seat::presence).collect()
    }

    pub(super) fn report(&mut self, visit: &Visit, key: &str, said: Said, now: Instant) -> Result<(), Over> {
        self.seat(visit)?.hear(now);
        let Some(seat) = self.seats.get_mut(&visit.workload) else { return Err(Over) };
        let Some(attempt) = self.attempts.get_mut(key).filter(|attempt| *attempt.workload() == visit.workload) else {
            seat.claim(key, if let Said::Ended(ended) = said { Some(ended) } else { None });
            return Ok(());
        };
        if !attempt.is_running() {
            // What it says now is late, unless it repeats itself.
            if let Said::Ended(ended) = said
                && !attempt.is_told_by_workload
            {
                seat.claim(key, Some(ended));
            }
            return Ok(());
        }
        match said {
            Said::Ended(ended) => {
                attempt.is_told_by_workload = true;
                let ended = attempt.as_it_was(ended, now);
                end(&self.reports, key, attempt, ended);
            }
            Said::Progress { text, expected_end_in } => {
                attempt.progress.news = Some((text, expected_end_in.map(|span| (self.wall)().plus(span))));
                tell_progress(&self.reports, key, attempt, now);
            }
            Said::MoreTime(needs) if attempt.may_ask_for_time(now) => {
                tell(&self.reports, key, News::MoreTime { needs });
            }
            // Told how much there is.
            Said::MoreTime(_) => _ = seat.tell(attempt.reminder()),
        }
        Ok(())
    }

    /// It was said of an attempt that nobody waits for.
    pub(super) fn is_claimed(&self, visit: &Visit, key: &str) -> bool {
        self.seats.get(&visit.workload).is_some_and(|seat| seat.claims().any(|(claimed, _)| claimed == key))
    }

    /// What is due by the clock alone. True when somebody's presence is another one now.
    pub(super) fn pass(&mut self, now: Instant) -> bool {
        let lapsed: Vec<_> = self.seats.iter_mut().filter_map(|(name, seat)| seat.lapse(now).then_some(name)).collect();
        let lapsed: Vec<WorkloadName> = lapsed.into_iter().cloned().collect();
        for name in &lapsed {
            self.vanish(name, "nothing was heard of its workload within its lease");
        }
        let expired = self.seats.values_mut().filter_map(|seat| seat.expire(now).then_some(())).count();
        for (key, attempt) in self.attempts.iter_mut().filter(|(_, attempt)| attempt.is_running()) {
            tell_progress(&self.reports, key, attempt, now);
            let is_live = self.seats.get(attempt.workload()).is_some_and(Seat::is_live);
            if let Some(ended) = attempt.overdue(now, is_live) {
                end(&self.reports, key, attempt, ended);
            } else if attempt.has_reached_its_deadline(now) {
                if attempt.reach == Reach::Unsent {
                    let reason = format!("{} did not connect in time", attempt.workload());
                    end(&self.reports, key, attempt, Ended::Blocked(reason));
                } else {
                    stop(&mut self.seats, attempt, now, true);
                }
            }
        }
        !lapsed.is_empty() || expired > 0
    }

    /// When `pass` has something to do again.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let seats = self.seats.values().filter_map(Seat::next_due);
        seats.chain(self.attempts.values().filter_map(Attempt::next_due)).min()
    }

    /// The workload is not there any more. What it was not given waits for it, unless something else is to be done in
    /// its absence.
    fn vanish(&mut self, name: &WorkloadName, why: &str) {
        let waits = self.seats.get(name).is_some_and(|seat| seat.workload.on_absent == OnAbsent::Hold);
        let its_own =
            self.attempts.iter_mut().filter(|(_, attempt)| attempt.is_running() && attempt.workload() == name);
        for (key, attempt) in its_own {
            match attempt.reach {
                Reach::Unsent if waits => {}
                Reach::Unsent => end(&self.reports, key, attempt, not_connected(name)),
                Reach::Inherited | Reach::Sent => end(&self.reports, key, attempt, Ended::Lost(why.to_owned())),
            }
        }
    }
}

pub(super) fn not_known(name: &WorkloadName) -> Ended {
    Ended::Lost(format!("{name} does not know of it; whether it was begun cannot be told"))
}

pub(super) fn not_connected(name: &WorkloadName) -> Ended {
    Ended::Blocked(format!("{name} is not connected"))
}

pub(super) fn send(seat: &mut Seat, attempt: &mut Attempt) {
    if seat.tell(attempt.step()) {
        attempt.reach = Reach::Sent;
        attempt.progress.is_over("given to its workload");
    }
}

pub(super) fn stop(seats: &mut BTreeMap<WorkloadName, Seat>, attempt: &mut Attempt, now: Instant, by_deadline: bool) {
    if attempt.stop(now, by_deadline)
        && let Some(seat) = seats.get_mut(attempt.workload())
    {
        seat.tell(attempt.reminder());
    }
}

pub(super) fn end(reports: &mpsc::Sender<Report>, key: &str, attempt: &mut Attempt, ended: Ended) {
    attempt.standing = Standing::Ended(ended.clone());
    tell(reports, key, News::Ended(ended));
}

pub(super) fn tell_progress(reports: &mpsc::Sender<Report>, key: &str, attempt: &mut Attempt, now: Instant) {
    if let Some((text, expected_end)) = attempt.progress.take(now) {
        tell(reports, key, News::Progress { text: Some(text), expected_end });
    }
}

/// What nobody has the time to hear is found when the attempt is asked for again.
pub(super) fn tell(reports: &mpsc::Sender<Report>, key: &str, news: News) {
    let _ = reports.try_send(Report { attempt: key.to_owned(), news });
}
