//! The database beside each replica: the database connects, takes a while for each hook, fails now and then, and
//! disconnects and reconnects. Completed hooks stay done, as on a disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use allclear::core::model::id::{GroupName, VmName, WorkloadName};
use allclear::core::model::workload::{Hook, Intent, OnAbsent, OnFailure, Origin, Phase, Role, Workload as Registered};
use allclear::hooks::session::{FromWorkload, Hello, SessionToken, ToWorkload};
use allclear::hooks::{HookOutcome, HookTask};
use allclear::replica::hook_executor::HookExecutor;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep, sleep_until};

use crate::world::World;

const LEASE: Duration = Duration::from_secs(5);

/// Effects of all workloads, however often the workloads were killed.
#[derive(Default)]
pub(crate) struct Effects(Mutex<Done>);

#[derive(Default)]
struct Done {
    steps: BTreeSet<String>,
    given: BTreeSet<String>,
}

impl Effects {
    pub(crate) fn count(&self) -> usize {
        self.done().steps.len()
    }

    fn done(&self) -> MutexGuard<'_, Done> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Workload {
    pub(crate) world: Arc<World>,
    pub(crate) vm: VmName,
    pub(crate) hooks: Arc<HookExecutor>,
    /// The host's run; a new replica has a new workload process.
    pub(crate) life: u32,
}

fn hook(phase: Phase) -> Hook {
    let timeout = Duration::from_secs(15);
    Hook { timeout, max_attempts: 3, on_failure: OnFailure::Continue, can_confirm: true, ..Hook::of(phase) }
}

/// Restore is delivered at least once.
fn may_repeat(phase: Phase) -> bool {
    matches!(phase, Phase::Restore | Phase::Ready)
}

impl Workload {
    fn greeting(&self, visits: u32) -> Hello {
        let name = WorkloadName("db".into());
        Hello {
            workload: Registered {
                name,
                group: Some(GroupName("orders".into())),
                after: Vec::new(),
                hooks: [Phase::Failover, Phase::Drain, Phase::Restore].map(hook).into(),
                origin: Origin::Session { owner: 0 },
                on_absent: OnAbsent::Hold,
            },
            boot: format!("{}.{visits}", self.life),
            lease: LEASE,
            retain: None,
            role: if self.vm == self.world.platform.vms[0] { Role::Primary } else { Role::Replica },
            known: BTreeMap::new(),
            polls: false,
        }
    }

    pub(crate) async fn run(self) {
        for visits in 0.. {
            let greeting = self.greeting(visits);
            let sessions = &self.hooks.runner.sessions;
            if let Ok(reserved) = sessions.reserve(&greeting.workload.name, &greeting.boot) {
                let (visit, told) = sessions.admit(&reserved, greeting);
                drop(reserved);
                self.attend(&visit, told).await;
                sessions.leave(&visit);
            }
            sleep(self.world.dice.millis(500, 8_000)).await;
        }
    }

    /// Serves until the session is over, or the process dies.
    async fn attend(&self, visit: &SessionToken, mut told: Receiver<ToWorkload>) {
        let dice = &self.world.dice;
        let until = if self.world.manner.is_quiet { 3_600_000 } else { 120_000 };
        let dies = Instant::now() + dice.millis(until / 8, until);
        let mut due: BTreeMap<String, (Instant, HookTask)> = BTreeMap::new();
        let sessions = &self.hooks.runner.sessions;
        loop {
            let next = due.values().map(|(at, _)| *at).min().unwrap_or(dies).min(dies);
            tokio::select! {
                biased;
                message = told.recv() => match message {
                    Some(ToWorkload::Step(task)) => self.begin(*task, &mut due),
                    Some(ToWorkload::Cancel { attempt, .. }) => {
                        due.remove(&attempt);
                        let _ = sessions.report(visit, &attempt, FromWorkload::Ended(HookOutcome::Cancelled));
                    }
                    Some(ToWorkload::Deadline { .. } | ToWorkload::Acknowledged(_)) => {}
                    Some(ToWorkload::GoAway(_)) | None => return,
                },
                () = sleep_until(next) => {}
                () = sleep(LEASE / 3) => {
                    if sessions.hear(visit, None).is_err() {
                        return;
                    }
                }
            }
            let now = Instant::now();
            if now >= dies {
                self.world.trace.line(format_args!("the workload of {} dies", self.vm));
                return;
            }
            let ended: Vec<String> = due.iter().filter(|(_, (at, _))| *at <= now).map(|(key, _)| key.clone()).collect();
            for (key, (_, task)) in ended.into_iter().filter_map(|key| due.remove_entry(&key)) {
                let _ = sessions.report(visit, &key, FromWorkload::Ended(self.end(&task)));
            }
        }
    }

    fn begin(&self, task: HookTask, due: &mut BTreeMap<String, (Instant, HookTask)>) {
        let is_new = self.world.effects.done().given.insert(task.attempt.clone());
        if !is_new && !may_repeat(task.phase) {
            self.world.history.wrong(format!("S7: {} was given to {} twice", task.attempt, self.vm));
        }
        let dice = &self.world.dice;
        let takes = if dice.percent(5) { dice.millis(20_000, 60_000) } else { dice.millis(10, 4_000) };
        due.insert(task.attempt.clone(), (Instant::now() + takes, task));
    }

    fn end(&self, task: &HookTask) -> HookOutcome {
        let mut done = self.world.effects.done();
        match task.intent {
            Intent::Confirm if done.steps.contains(&task.step) => HookOutcome::Done,
            Intent::Confirm => HookOutcome::NotDone,
            Intent::Undo => HookOutcome::NotApplicable,
            Intent::Run if self.world.dice.percent(8) => HookOutcome::Failed("it could not".into()),
            Intent::Run => {
                if !done.steps.insert(task.step.clone()) && !may_repeat(task.phase) {
                    self.world.history.wrong(format!("S7: {} has its effect twice", task.step));
                }
                HookOutcome::Done
            }
        }
    }
}
