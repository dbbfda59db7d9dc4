//! A round: a cluster, the events and the faults, the time afterwards in which everything has to recover, and the
//! record of the round.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use allclear::grpc::client::OperatorConnection;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

use super::super::cluster::Cluster;
use super::super::dice::Dice;
use super::super::workload::hook;
use super::agenda::{Announcement, Fault, Halting, Stroke, announcements, desertion, strokes};
use super::gather::{self, now};
use super::halts;
use super::record::{Duty, Record, Sighting, Strike};
use super::strike::InForce;
use super::tricks::Tricks;

pub(super) const USER_BUDGET: (&str, i64) = ("5s", 5_000);
pub(super) const CLAIM_LEASE_MS: i64 = 5_000;
/// The interval between two checks for pending actions.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// The interval between two queries of a replica's events.
const SEE_AGAIN: Duration = Duration::from_secs(1);
/// The restart delay, as of a service manager.
const START_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// The number of checks, at least two minutes: notices, restoring, and a replica that has to catch up. A number instead
/// of a duration, so that the limit grows on a machine without time for this test.
const LOOKS_UNTIL_RIGHT: usize = 400;
const LOOK_WHETHER_RIGHT: Duration = Duration::from_millis(300);
/// A pause of the whole machine that is as good as a fault.
const STARVED: Duration = Duration::from_millis(700);

/// Hooks that hold the event and a hook that does not, in two workloads, the second after the first.
const DUTIES: [Duty; 4] = [
    Duty { workload: "database", phase: "checkpoint", holds: true },
    Duty { workload: "database", phase: "failover", holds: true },
    Duty { workload: "database", phase: "drain", holds: true },
    Duty { workload: "cache", phase: "drain", holds: false },
];

pub(super) struct Round {
    pub(super) cluster: Cluster,
    /// Dropped after the cluster: replicas read the tricks' files to the replicas' ends.
    pub(super) tricks: Tricks,
    pub(super) record: Record,
    in_force: Vec<InForce>,
    /// The time at which the end of each replica by itself was noticed, for the restart.
    ended: [Option<Instant>; 3],
    /// True if the machine had no time for this test during the recovery.
    was_starved: bool,
    seen: Arc<Mutex<Vec<Sighting>>>,
    watchers: Vec<AbortHandle>,
}

impl Drop for Round {
    fn drop(&mut self) {
        self.watchers.iter().for_each(AbortHandle::abort);
    }
}

impl Round {
    pub(super) async fn set() -> Self {
        let tricks = Tricks::prepared();
        let database = vec![
            hook("checkpoint").with("timeout = \"3s\""),
            hook("failover").with("timeout = \"6s\"").can_confirm(),
            hook("drain").with("timeout = \"5s\""),
            hook("restore").with("timeout = \"6s\"").with("attempts = 6"),
        ];
        let drain = hook("drain").with("timeout = \"2s\"").with("attempts = 1").with("on_failure = \"continue\"");
        let cache = vec![drain, hook("restore").with("timeout = \"6s\"").with("attempts = 6")];
        let cluster = Cluster::of(&["db-0", "db-1", "db-2"])
            .workload("database", database)
            .workload_after("database", "cache", cache)
            .script(include_str!("hook.sh"))
            .environments((0..3).map(|place| tricks.environment(place)).collect())
            .with_links()
            .with_disks("24m")
            .also("metadata.poll_interval", "250ms")
            .also("metadata.stall_after", "2s")
            .also("metadata.stale_after", "8s")
            .also("cluster.election_timeout", "1500ms")
            .also("cluster.takeover_after", "6s")
            .also("policy.user_budget", USER_BUDGET.0)
            .also("policy.margin", "1s")
            .also("policy.give_back_after", "20s")
            .also("policy.last_call", "2s")
            .start()
            .await;
        let record = Record {
            vms: ["db-0", "db-1", "db-2"].map(str::to_owned).into(),
            duties: DUTIES.into(),
            max_unavailable: 1,
            user_budget_ms: USER_BUDGET.1,
            claim_lease_ms: CLAIM_LEASE_MS,
            ..Record::default()
        };
        let mut round = Self {
            cluster,
            tricks,
            record,
            in_force: Vec::new(),
            ended: [None; 3],
            was_starved: false,
            seen: Arc::default(),
            watchers: Vec::new(),
        };
        round.watch();
        round
    }

    /// Records each replica's events, again and again.
    fn watch(&mut self) {
        for replica in &self.cluster.replicas {
            let (name, socket, seen) = (replica.name.clone(), replica.socket.clone(), Arc::clone(&self.seen));
            let look = async move {
                loop {
                    sleep(SEE_AGAIN).await;
                    let ask = async { OperatorConnection::connect(&socket).await.ok()?.events().await.ok() };
                    // A paused replica does not answer.
                    if let Ok(Some(list)) = timeout(Duration::from_secs(2), ask).await {
                        let sighting = Sighting { by: name.clone(), answered: now(), events: list.events };
                        seen.lock().unwrap().push(sighting);
                    }
                }
            };
            self.watchers.push(tokio::spawn(look).abort_handle());
        }
    }

    /// Plays the seed's events and faults for this duration, side by side.
    pub(super) async fn storm(&mut self, seed: u64, span: Duration) {
        let mut dice = Dice::mixed(seed);
        let mut coming = announcements(&mut dice, span).into_iter().peekable();
        let mut strokes = strokes(&mut dice, span, |fault| self.can(fault)).into_iter().peekable();
        let began = Instant::now();
        while began.elapsed() < span {
            while let Some(Announcement { order, .. }) = coming.next_if(|next| next.at <= began.elapsed()) {
                self.cluster.cloud.announce(order).await;
            }
            self.lift(|in_force| in_force.until <= Instant::now()).await;
            while let Some(stroke) = strokes.next_if(|next| next.at <= began.elapsed()) {
                self.strike(stroke).await;
            }
            self.mind();
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Plays an event with two replicas gone or cut off for twice the time that a replica of a pair would wait for the
    /// other replica.
    pub(super) async fn desert(&mut self, seed: u64) {
        let desertion = desertion(&mut Dice::mixed(seed));
        let pauses = desertion.halting != Halting::Nothing;
        let pause = if pauses { halts::pause(&self.cluster).await } else { None };
        let mut halts = Vec::new();
        let id = self.cluster.cloud.announce(desertion.order).await;
        if desertion.halting == Halting::Hold {
            halts.extend(halts::hold(&self.cluster, &id).await);
        }
        match pause {
            Some(mut pause) if desertion.halting == Halting::Hold => {
                halts::end_of(&self.cluster, &mut pause).await;
                self.record.halts.push(pause);
            }
            pause => halts.extend(pause),
        }
        let began = Instant::now();
        for stroke in desertion.strokes {
            sleep(stroke.at.saturating_sub(began.elapsed())).await;
            self.strike(stroke).await;
        }
        while !self.in_force.is_empty() {
            self.lift(|in_force| in_force.until <= Instant::now()).await;
            self.mind();
            sleep(LOOK_AGAIN).await;
        }
        for halt in &mut halts {
            halts::end_of(&self.cluster, halt).await;
            println!("  halted {halt:?}");
        }
        self.record.halts.extend(halts);
    }

    fn can(&self, fault: &Fault) -> bool {
        match fault {
            Fault::FillDisk(place) => self.cluster.disks.len() > *place,
            Fault::FailSync(_) => self.tricks.can_fail_syncs(),
            Fault::Clock(..) => self.tricks.can_set_clocks(),
            _ => true,
        }
    }

    async fn strike(&mut self, stroke: Stroke) {
        let in_force = InForce::begin(&mut self.cluster, &self.tricks, stroke).await;
        self.in_force.push(in_force);
    }

    async fn lift(&mut self, such: impl Fn(&InForce) -> bool) {
        let (over, left): (Vec<_>, Vec<_>) = self.in_force.drain(..).partition(such);
        self.in_force = left;
        for in_force in over {
            let strike = in_force.end(&mut self.cluster, &self.tricks).await;
            println!("  {} {}: {}", if strike.took_effect { "struck" } else { "missed" }, strike.kind, strike.what);
            self.record.strikes.push(strike);
        }
    }

    /// Restarts replicas that ended by themselves, and records whether the end had a reason.
    fn mind(&mut self) {
        for place in 0..3 {
            if let Some(status) = self.cluster.ended(place) {
                let is_struck = |each: &InForce| each.is_of_the_disk(place);
                let lately = |strike: &Strike| is_disk(strike, place) && strike.to + 5_000 > now();
                let has_reason = self.in_force.iter().any(is_struck) || self.record.strikes.iter().any(lately);
                println!("  db-{place} ended by itself: {status}");
                if !has_reason {
                    self.record.deaths.push(format!("db-{place} ended by itself at {}: {status}", now()));
                }
                self.ended[place] = Some(Instant::now());
            }
            if self.ended[place].is_some_and(|at| at.elapsed() >= START_AGAIN_AFTER) {
                self.ended[place] = None;
                self.cluster.start(place);
            }
        }
    }

    /// Runs without faults, until every event is closed on every replica and all replicas agree. The remaining
    /// differences when the time is up are left to the judge, with the whole record by then.
    pub(super) async fn come_right(&mut self) {
        self.lift(|_| true).await;
        self.cluster.cloud.clear_faults().await;
        let (began, mut looks) = (Instant::now(), 0);
        self.was_starved = false;
        while looks < LOOKS_UNTIL_RIGHT && !self.is_right().await {
            self.mind();
            let before = Instant::now();
            sleep(LOOK_WHETHER_RIGHT).await;
            self.was_starved |= before.elapsed() > LOOK_WHETHER_RIGHT + STARVED;
            looks += 1;
        }
        println!("  looked {looks} times in {:?} until everything was right", began.elapsed());
        self.record.events = gather::events(&self.cluster, &self.record.events).await;
        self.record.posts = gather::posts(&self.cluster).await;
        self.record.runs = gather::runs(&self.cluster);
        self.record.sightings.append(&mut self.seen.lock().unwrap());
    }

    async fn is_right(&mut self) -> bool {
        let events = gather::events(&self.cluster, &[]).await;
        let is_over = |event: &super::record::Announced| event.ended.is_some();
        if !events.iter().all(is_over) || self.ended.iter().any(Option::is_some) {
            return false;
        }
        for place in 0..3 {
            let is_whole = self.cluster.status(place).await.is_some_and(|status| {
                let is_well = |replica: &allclear::wire::pb::allclear::operator::v1::Replica| {
                    replica.reachable && replica.metadata == "healthy" && !replica.suspect
                };
                status.quorum && status.replicas.iter().all(is_well)
            });
            if !is_whole {
                return false;
            }
        }
        self.record.stories = gather::stories(&self.cluster).await;
        let all_closed = |(_, events): &super::record::Story| events.iter().all(|event| event.stage == "closed");
        let alike = self.record.stories.windows(2).all(|pair| pair[0].1 == pair[1].1);
        self.record.stories.len() == 3 && alike && self.record.stories.iter().all(all_closed)
    }

    /// After the recovery, every announced event is approved once and closed.
    pub(super) async fn calm(&mut self, seed: u64) {
        let known: Vec<String> = self.record.events.iter().map(|event| event.id.clone()).collect();
        let place = usize::try_from(seed % 3).unwrap();
        for (vm, source) in [(place, "User"), ((place + 1) % 3, "Platform")] {
            let order =
                serde_json::json!({ "type": "Reboot", "source": source, "vm": vm, "notice": 20_000, "impact": 500 });
            self.cluster.cloud.announce(order).await;
        }
        self.come_right().await;
        for event in self.record.events.iter_mut().filter(|event| !known.contains(&event.id)) {
            event.is_calm = !self.was_starved;
        }
    }
}

fn is_disk(strike: &Strike, place: usize) -> bool {
    ["a disk is full", "a sync fails"].contains(&strike.kind) && strike.what.contains(&format!("db-{place}"))
}
