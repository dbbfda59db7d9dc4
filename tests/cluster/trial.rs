//! A failover whose effect must happen once, while the workload, the replica, the leader and the stream between
//! workload and replica are lost at every point of an attempt: three replicas and a database as processes, event after
//! event. `ALLCLEAR_TRIALS=200` has more trials than every point with every fault once; the further trials have a
//! second fault, at a random time.

use std::time::Duration;

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::cluster::Cluster;
use super::dice::Dice;
use super::embedded::{Database, Manner, Moment, WORKLOAD};
use super::line::{Caught, Line, Towards};

const TRIALS: &str = "ALLCLEAR_TRIALS";
const SEED: &str = "ALLCLEAR_SEED";
const TRIALS_LEFT_OUT: u64 = 24;
/// Longer than the workload's lease.
const BEYOND_THE_LEASE: Duration = Duration::from_millis(1500);
/// The replica of the affected VM. This replica is never the leader then: leadership is transferred before.
const AFFECTED: usize = 0;

/// The point at which the attempt is stopped for the fault.
#[derive(Clone, Copy, Debug)]
enum Point {
    /// The replica has sent the attempt; the workload has not received the attempt, and so not begun the journal.
    Delivery,
    /// The attempt is in the journal, and has had no effect.
    Begun,
    /// The attempt has had its effect; the end is not in the journal.
    Effect,
    /// The end is in the journal; the replica does not know the end.
    Report,
    /// The outcome is in the log; the workload does not know the outcome.
    Acknowledgement,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    Workload,
    Replica,
    Leader,
    Stream,
}

const POINTS: [Point; 5] = [Point::Delivery, Point::Begun, Point::Effect, Point::Report, Point::Acknowledgement];
const FAULTS: [Fault; 4] = [Fault::Workload, Fault::Replica, Fault::Leader, Fault::Stream];

#[derive(Debug)]
struct Trial {
    point: Point,
    fault: Fault,
    /// The delay after which a killed process is restarted.
    away: Duration,
    /// A second fault, after this further delay.
    then: Option<(Duration, Fault)>,
}

/// Every point with every fault, then random pairs.
fn trials(count: u64, dice: &mut Dice) -> Vec<Trial> {
    let mut every = POINTS.iter().flat_map(|point| FAULTS.iter().map(|fault| (*point, *fault)));
    let next = |number| {
        let (point, fault) = every.next().unwrap_or_else(|| (dice.of(&POINTS), dice.of(&FAULTS)));
        let away = if dice.below(2) == 0 { Duration::ZERO } else { BEYOND_THE_LEASE };
        let is_enumerated = number < (POINTS.len() * FAULTS.len()) as u64;
        let then = (!is_enumerated).then(|| (Duration::from_millis(dice.below(2_000)), dice.of(&FAULTS)));
        Trial { point, fault, away, then }
    };
    (0..count).map(next).collect()
}

struct Stage {
    cluster: Cluster,
    database: Database,
    line: Line,
    _folder: TempDir,
    /// The number of replicas that were killed in this trial: a killed approver may have posted, or not.
    killed: usize,
}

impl Stage {
    async fn set(manner: Manner) -> Self {
        let plan = Cluster::of(&["db-0", "db-1", "db-2"]).also("metadata.poll_interval", "200ms");
        // A machine that is busy with other work is no fault under test.
        let plan = plan.also("cluster.election_timeout", "1500ms");
        let cluster = plan.start().await;
        let folder = TempDir::with_prefix("ac").unwrap();
        let line = Line::between(&folder.path().join("line"), cluster.door(AFFECTED));
        let database = Database::started(folder.path(), manner);
        Self { cluster, database, line, _folder: folder, killed: 0 }
    }

    /// Announces an event that ends automatically, once all replicas and the database are connected.
    async fn announce(&mut self) -> String {
        self.cluster.ready().await;
        let is_here = |status: &Status| status.workloads.iter().any(|each| each.name == WORKLOAD && each.connected);
        self.cluster.until(AFFECTED, "visited by the database", is_here).await;
        self.killed = 0;
        // A platform event is not approved merely because the event's time is over.
        let order = json!({ "type": "Reboot", "source": "Platform", "vm": AFFECTED, "impact": 100 });
        self.cluster.cloud.announce(order).await
    }

    /// Announces an event, and stops its failover at this point.
    async fn stopped_at(&mut self, point: Point) -> (String, Option<Caught>) {
        let moment = if matches!(point, Point::Effect) { Moment::AfterTheEffect } else { Moment::BeforeTheEffect };
        self.database.hold(moment);
        if let Point::Delivery = point {
            let step = self.line.catch(Towards::Workload, "/failover/0".into());
            let id = self.announce().await;
            let caught = step.await.unwrap();
            self.database.let_go();
            return (id, Some(caught));
        }
        let id = self.announce().await;
        self.cluster.until_true("the failover", async || self.database.is_held()).await;
        if matches!(point, Point::Begun | Point::Effect) {
            return (id, None);
        }
        let report = self.line.catch(Towards::Replica, format!("{id}."));
        self.database.let_go();
        let report = report.await.unwrap();
        if let Point::Report = point {
            return (id, Some(report));
        }
        let acknowledgement = self.line.catch(Towards::Workload, format!("{id}."));
        report.let_pass();
        (id, Some(acknowledgement.await.unwrap()))
    }

    /// Returns the killed replica, if any.
    async fn lose(&mut self, what: Fault) -> Option<usize> {
        match what {
            Fault::Workload if self.database.runs() => self.database.kill(),
            Fault::Workload => {}
            Fault::Stream => self.line.cut(),
            Fault::Replica | Fault::Leader => {
                let place = if what == Fault::Leader { self.cluster.leader(1).await } else { AFFECTED };
                self.cluster.kill(place);
                self.killed += 1;
                return Some(place);
            }
        }
        None
    }

    fn restore(&mut self, killed: Option<usize>) {
        if let Some(place) = killed {
            self.cluster.start(place);
        }
        if !self.database.runs() {
            self.database.start();
        }
    }

    async fn run(&mut self, trial: &Trial) -> String {
        let (id, caught) = self.stopped_at(trial.point).await;
        let killed = self.lose(trial.fault).await;
        match caught {
            Some(caught) if trial.fault == Fault::Leader => caught.let_pass(),
            // the sender or the receiver of the caught message is gone
            Some(caught) => drop(caught),
            None => self.database.let_go(),
        }
        sleep(trial.away).await;
        self.restore(killed);
        if let Some((after, fault)) = trial.then {
            sleep(after).await;
            let killed = self.lose(fault).await;
            self.restore(killed);
        }
        id
    }

    /// The event was approved, and the failover had an effect before the approval, once.
    async fn judge(&self, id: &str) {
        let is_approved = |event: &Event| event.stage == "started" || event.stage == "closed";
        let event = self.cluster.until_event(1, id, "approved", is_approved).await;
        assert_eq!(event.start_cause.as_deref(), Some("approved"), "{event:#?}");
        let event = self.cluster.closed_everywhere(id).await;
        assert_eq!(self.database.effects(id), 1, "effects of {event:#?}");
        let posts = self.cluster.cloud.approvals(id);
        assert_eq!(posts.iter().filter(|post| post.took_effect).count(), 1, "{posts:?}");
        assert!(posts.len() <= 1 + self.killed, "{posts:?} {event:#?}");
    }
}

/// Runs every point with every fault, and some more trials.
pub(crate) async fn play() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let count = number(TRIALS).unwrap_or(TRIALS_LEFT_OUT);
    let mut dice = Dice(number(SEED).unwrap_or(20_26));
    let trials = trials(count, &mut dice);
    let began = Instant::now();
    let mut stage = Stage::set(Manner::Careful).await;
    for (number, trial) in trials.iter().enumerate() {
        println!("{number}: {trial:?} at {:?}", began.elapsed());
        let id = stage.run(trial).await;
        stage.judge(&id).await;
    }
    println!("{count} trials in {:?}: one effect and one all-clear each", began.elapsed());
}

/// Positive control: the trial detects a repeated effect.
#[tokio::test]
async fn without_a_journal_and_without_looking_the_effect_happens_again() {
    let mut stage = Stage::set(Manner::Careless).await;
    let trial = Trial { point: Point::Effect, fault: Fault::Workload, away: Duration::ZERO, then: None };
    let id = stage.run(&trial).await;
    stage.cluster.closed_everywhere(&id).await;
    assert_eq!(stage.database.effects(&id), 2);
}

#[tokio::test]
async fn without_a_journal_and_without_an_answer_the_event_is_held() {
    let mut stage = Stage::set(Manner::Blind).await;
    let trial = Trial { point: Point::Effect, fault: Fault::Workload, away: Duration::ZERO, then: None };
    let id = stage.run(&trial).await;
    let is_held = |event: &Event| event.blocker.as_ref().is_some_and(|blocker| blocker.code == "hook_failed");
    stage.cluster.until_event(1, &id, "held", is_held).await;
    stage.cluster.a_few_polls_later().await;
    assert_eq!((stage.database.effects(&id), stage.cluster.cloud.approvals(&id).len()), (1, 0));
}
