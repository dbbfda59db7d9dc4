//! The door to workloads that dial in: for them, and for the replica that has something for them to do.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::book::Book;
use super::{Greeting, MAX_UNREAD, Over, Presence, Refusal, Said, Terms, Told, Visit};
use crate::machine::id::WorkloadName;
use crate::machine::time::Timestamp;
use crate::machine::workload::{Condition, Role, Workload};
use crate::workloads::{Ended, Report, Standing, Task, Wall};

const REPORTS: usize = 1024;

/// Made and used inside a tokio runtime. None of its calls waits for anything.
pub struct Sessions {
    shared: Arc<Shared>,
    timer: AbortHandle,
}

struct Shared {
    /// Never held over anything that waits.
    book: Mutex<Book>,
    wall: Wall,
    /// Something is due earlier than before.
    is_sooner: Notify,
    /// Counts changes of who is there, and as what.
    presence: watch::Sender<u64>,
    /// Counts what workloads say of attempts that nobody here has taken up.
    claims: watch::Sender<u64>,
}

/// A name that nobody else gets while its registration is on its way into the log.
pub struct Reservation {
    shared: Arc<Shared>,
    name: WorkloadName,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shared.book().release(&self.name);
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.timer.abort();
    }
}

impl Sessions {
    /// Deadlines are moments of this machine's wall clock.
    pub fn open(wall: Wall) -> (Self, mpsc::Receiver<Report>) {
        let (reports, receiver) = mpsc::channel(REPORTS);
        let shared = Arc::new(Shared {
            book: Mutex::new(Book::new(reports, wall.clone())),
            wall,
            is_sooner: Notify::new(),
            presence: watch::Sender::new(0),
            claims: watch::Sender::new(0),
        });
        let timer = tokio::spawn(keep_time(shared.clone())).abort_handle();
        (Self { shared, timer }, receiver)
    }

    /// For the door.
    pub fn reserve(&self, name: &WorkloadName, boot: &str) -> Result<Reservation, Refusal> {
        self.shared.book().reserve(name, boot)?;
        Ok(Reservation { shared: self.shared.clone(), name: name.clone() })
    }

    /// Seats a workload, and hands out what it is told from now on. The line ends with the session.
    pub fn admit(&self, reserved: &Reservation, greeting: Greeting) -> (Visit, mpsc::Receiver<Told>) {
        let (line, told) = mpsc::channel(MAX_UNREAD);
        let visit = Visit { workload: reserved.name.clone(), token: token() };
        let has_claims = !greeting.known.is_empty();
        self.shared.book().admit(greeting, visit.token.clone(), line, Instant::now());
        self.shared.is_sooner.notify_one();
        count(&self.shared.presence);
        if has_claims {
            count(&self.shared.claims);
        }
        (visit, told)
    }

    /// Keeps the lease, which is returned.
    pub fn hear(&self, visit: &Visit, role: Option<Role>) -> Result<Duration, Over> {
        let (lease, is_news) = self.shared.book().hear(visit, role, Instant::now())?;
        if is_news {
            count(&self.shared.presence);
        }
        Ok(lease)
    }

    pub fn report(&self, visit: &Visit, attempt: &str, said: Said) -> Result<(), Over> {
        let is_claim = {
            let mut book = self.shared.book();
            book.report(visit, attempt, said, Instant::now())?;
            book.is_claimed(visit, attempt)
        };
        self.shared.is_sooner.notify_one();
        if is_claim {
            count(&self.shared.claims);
        }
        Ok(())
    }

    pub fn leave(&self, visit: &Visit) {
        self.shared.book().leave(visit);
    }

    /// Its registration is to be taken back.
    pub fn let_go(&self, name: &WorkloadName) {
        self.shared.book().let_go(name);
        count(&self.shared.presence);
    }

    /// The log does not know one that was due to go any more.
    pub fn take_off(&self, name: &WorkloadName) {
        self.shared.book().take_off(name);
        count(&self.shared.presence);
    }

    pub fn is_seated(&self, name: &WorkloadName) -> bool {
        self.shared.book().is_seated(name)
    }

    /// Those that the log knows may come back to this life of the replica.
    pub fn expect<'a>(&self, known: impl IntoIterator<Item = (&'a Workload, Condition)>) {
        if self.shared.book().expect(known, Instant::now()) {
            self.shared.is_sooner.notify_one();
            count(&self.shared.presence);
        }
    }

    pub fn presences(&self) -> Vec<Presence> {
        self.shared.book().presences()
    }

    /// Changes whenever `presences` does.
    pub fn presence_changes(&self) -> watch::Receiver<u64> {
        self.shared.presence.subscribe()
    }

    /// Changes when a workload tells of attempts that were not given to it here.
    pub fn claim_changes(&self) -> watch::Receiver<u64> {
        self.shared.claims.subscribe()
    }

    /// Gives it to the workload, now or when it is there, unless it was given before.
    pub fn run(&self, task: &Task, terms: Terms) {
        let until = Instant::now() + task.deadline.since((self.shared.wall)());
        self.shared.book().run(task, terms, until, Instant::now());
        self.shared.is_sooner.notify_one();
    }

    pub fn cancel(&self, attempt: &str) {
        self.shared.book().cancel(attempt, Instant::now());
        self.shared.is_sooner.notify_one();
    }

    pub fn known(&self, attempt: &str) -> Option<Standing> {
        self.shared.book().known(attempt)
    }

    pub fn attempts(&self) -> Vec<(String, Standing)> {
        self.shared.book().attempts()
    }

    /// Attempts that workloads say they know, and that nobody here has taken up, with how they ended.
    pub fn claims(&self) -> Vec<(WorkloadName, String, Option<Ended>)> {
        self.shared.book().claims()
    }

    /// Nobody waits for what this workload says of this attempt.
    pub fn dismiss_claim(&self, workload: &WorkloadName, attempt: &str) {
        self.shared.book().dismiss_claim(workload, attempt);
    }

    pub fn forget(&self, attempt: &str) {
        self.shared.book().forget(attempt);
    }

    /// The log has another deadline for it, which is this one on the machine's wall clock.
    pub fn change_deadline(&self, attempt: &str, deadline: Timestamp, on_the_wall: Timestamp) {
        let until = Instant::now() + on_the_wall.since((self.shared.wall)());
        if self.shared.book().change_deadline(attempt, deadline, on_the_wall, until) {
            self.shared.is_sooner.notify_one();
        }
    }

    /// Tells its workload again until when it has to be done.
    pub fn remind(&self, attempt: &str) {
        self.shared.book().remind(attempt);
    }
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn keep_time(shared: Arc<Shared>) {
    loop {
        let next = shared.book().next_due();
        tokio::select! {
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                if shared.book().pass(Instant::now()) {
                    count(&shared.presence);
                }
            }
            () = shared.is_sooner.notified() => {}
        }
    }
}

fn count(changes: &watch::Sender<u64>) {
    changes.send_modify(|count| *count = count.wrapping_add(1));
}

/// Whoever may dial in still cannot guess it.
fn token() -> String {
    // Each has keys of its own, which the system chose.
    let part = || RandomState::new().hash_one(0);
    format!("{:016x}{:016x}", part(), part())
}
