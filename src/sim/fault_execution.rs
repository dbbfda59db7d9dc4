//! The actions on the machines of a world: start, crash, pause and resume.

use std::rc::Rc;
use std::time::Duration;

use super::event_queue::QueuedEvent;
use super::node_state::{Pause, SessionWorkload};
use super::raft_model::Agreement;
use super::replica_model::{self, ModelContext, ProcessState};
use super::scenario::{Fault, FaultKind, ScenarioAction};
use super::world::World;
use allclear_core::model::claim::PostOutcome;
use allclear_core::model::time::Timestamp;

/// A process that died restarts after this time, unless the fault sets another time.
const BACK_AFTER: Duration = Duration::from_secs(2);

/// A stop of at least this duration is noticed by the stopped process.
const NOTICED_FROM: Duration = Duration::from_secs(3);

impl World {
    pub(super) fn happen(self: &Rc<Self>, place: usize) {
        let happening = self.scenario.happenings[place].clone();
        if self.is_healed.get() && matches!(happening.what, ScenarioAction::Fault(_)) {
            return;
        }
        self.tell(|| format!("{:?}", happening.what));
        match happening.what {
            ScenarioAction::Announce(plan) => {
                let announced = self.cloud.borrow_mut().announce(self.now(), *plan);
                if let Ok(id) = announced {
                    self.tell(|| format!("the platform announces {id}"));
                }
            }
            ScenarioAction::Fault(fault) => self.begin_fault(place, fault),
            ScenarioAction::Wish(vm, wish) => {
                if let Some(here) = self.here(vm) {
                    self.took_effect(place);
                    self.tasks.spawn(vm, replica_model::operators::ask(here, wish));
                }
            }
            ScenarioAction::Role(vm, role) => {
                self.nodes[vm].role.set(role);
                self.presence_changed(vm);
            }
            ScenarioAction::Come(vm, workload) => {
                *self.nodes[vm].guest.borrow_mut() =
                    Some(SessionWorkload { workload: *workload, is_here: true, says_farewell: false });
                self.presence_changed(vm);
            }
            ScenarioAction::Go(vm, says_farewell) => {
                if let Some(guest) = self.nodes[vm].guest.borrow_mut().as_mut() {
                    (guest.is_here, guest.says_farewell) = (false, says_farewell);
                }
                self.presence_changed(vm);
            }
        }
    }

    fn presence_changed(&self, vm: usize) {
        if let Some(process) = self.process(vm) {
            process.signals.presence.tell(&self.tasks);
        }
    }

    fn begin_fault(self: &Rc<Self>, place: usize, fault: Fault) {
        let Fault { vm, lasts, ref kind } = fault;
        let takes_effect = match *kind {
            FaultKind::Crash { whole } => self.crash(vm, lasts, whole),
            FaultKind::DiskLost => {
                self.crash(vm, lasts, true);
                self.lose_disk(vm);
                true
            }
            FaultKind::Reconfigured(change) => {
                change.apply(&mut self.nodes[vm].workloads.borrow_mut());
                self.crash(vm, lasts, false);
                true
            }
            FaultKind::Pause { stops_clock } => self.pause(vm, lasts, stops_clock),
            FaultKind::ClockJump { by } => {
                self.nodes[vm].body.borrow_mut().ahead += by;
                self.judge.borrow_mut().wrong_clocks.insert(vm);
                true
            }
            // The fault applies to all VMs, and there is always at least one VM.
            FaultKind::Incarnations => self.cloud.borrow_mut().restart_incarnation(None).is_ok(),
            FaultKind::DiskFails { is_written } => {
                let is_up = self.nodes[vm].is_up();
                if is_up {
                    self.nodes[vm].body.borrow_mut().fails = Some(is_written);
                }
                is_up
            }
            _ => {
                self.open_window(place, fault);
                false
            }
        };
        if takes_effect {
            self.took_effect(place);
        }
    }

    pub(super) fn here(self: &Rc<Self>, vm: usize) -> Option<ModelContext> {
        Some(ModelContext { world: self.clone(), me: vm, process: self.process(vm)? })
    }

    /// A process starts, with the content of its disk.
    pub(super) fn start(self: &Rc<Self>, vm: usize) {
        let node = &self.nodes[vm];
        {
            let mut body = node.body.borrow_mut();
            if body.is_up || body.is_deleted {
                return;
            }
            body.is_up = true;
            body.life += 1;
            (body.is_doomed, body.fails) = (false, None);
            body.awake_since = Timestamp(self.now().0 - body.stood);
        }
        self.tell(|| format!("{} begins", node.name));
        self.read_back(vm);
        if makes!(self.mutation, JournalLost) {
            node.journal.borrow_mut().clear();
        }
        let at = node.wall(self.now());
        for entry in node.journal.borrow_mut().iter_mut().filter(|entry| entry.approval.outcome.is_none()) {
            let why = "this replica was restarted and cannot tell whether it had posted";
            entry.approval.outcome = Some((PostOutcome::Unknown(why.into()), at));
        }
        node.process.replace(Some(Rc::new(ProcessState::new(self, vm))));
        self.endpoints.borrow_mut()[vm].not_served();
        if let Some(here) = self.here(vm) {
            replica_model::start(&here);
        }
        let random = self.random.borrow_mut().millis(600, 1200);
        node.agreement.borrow_mut().patience = node.steady(self.now()).plus(random);
        self.tick(vm);
    }

    /// False if the process was not up.
    pub(super) fn crash(self: &Rc<Self>, vm: usize, lasts: Duration, whole: bool) -> bool {
        let node = &self.nodes[vm];
        let was_up = {
            let mut body = node.body.borrow_mut();
            let was_up = std::mem::take(&mut body.is_up);
            if let Some(pause) = body.pause.take().filter(|pause| pause.stops_clock) {
                body.stood += self.now().0 - pause.since.0;
            }
            body.held.clear();
            body.downs += 1;
            body.boot += u32::from(whole);
            (body.is_doomed, body.fails) = (false, None);
            self.put_in(lasts, QueuedEvent::Restart { vm, number: body.downs });
            was_up
        };
        self.judge.borrow_mut().is_disturbed = true;
        self.judge_loss_of_time(vm);
        self.tell(|| format!("{} is down{}", node.name, if whole { " with its machine" } else { "" }));
        if whole {
            self.lose_programs(vm);
        }
        self.tasks.end(vm);
        node.process.replace(None);
        *node.agreement.borrow_mut() = Agreement::default();
        was_up
    }

    fn lose_disk(&self, vm: usize) {
        let node = &self.nodes[vm];
        let another = node.kept.borrow().another();
        *node.kept.borrow_mut() = another;
        let journal = std::mem::take(&mut *node.journal.borrow_mut());
        node.programs.borrow_mut().clear();
        node.is_new.set(true);
        node.has_new_journal.set(true);
        self.judge.borrow_mut().lose_disk(vm, !journal.is_empty());
    }

    fn pause(&self, vm: usize, lasts: Duration, stops_clock: bool) -> bool {
        let node = &self.nodes[vm];
        let number = {
            let mut body = node.body.borrow_mut();
            if !body.is_up || body.pause.is_some() {
                return false;
            }
            // Connections have a limited lifetime.
            let lasting = u64::try_from(lasts.as_millis()).unwrap_or(0);
            let holds = self.random.borrow_mut().millis(0, lasting * 2);
            body.pause = Some(Pause { since: self.now(), stops_clock, holds });
            body.downs += 1;
            body.downs
        };
        self.judge.borrow_mut().is_disturbed = true;
        self.put_in(lasts, QueuedEvent::Resume { vm, number });
        true
    }

    pub(super) fn freeze(&self, vm: usize, lasts: Duration) {
        self.pause(vm, lasts, true);
    }

    pub(super) fn resume(self: &Rc<Self>, vm: usize) {
        let node = &self.nodes[vm];
        let held = {
            let mut body = node.body.borrow_mut();
            let Some(pause) = body.pause.take() else { return };
            if pause.stops_clock {
                body.stood += self.now().0 - pause.since.0;
            } else if self.now().since(pause.since) >= NOTICED_FROM {
                body.awake_since = Timestamp(self.now().0 - body.stood);
            }
            std::mem::take(&mut body.held)
        };
        self.tell(|| format!("{} goes on", node.name));
        self.tasks.resume();
        self.take_held(held);
    }

    /// The process dies when its current step is done.
    pub(super) fn doom(&self, vm: usize) {
        self.tell(|| format!("the disk of {} fails", self.nodes[vm].name));
        self.nodes[vm].body.borrow_mut().is_doomed = true;
    }

    pub(super) fn bury_the_doomed(self: &Rc<Self>) {
        for vm in 0..self.nodes.len() {
            if self.nodes[vm].body.borrow().is_doomed {
                self.crash(vm, BACK_AFTER, false);
            }
        }
    }

    /// From here on no fault happens, and every replica is up.
    pub(super) fn heal(self: &Rc<Self>) {
        self.tell(|| "everything heals".into());
        self.close_windows();
        self.is_healed.set(true);
        for vm in 0..self.nodes.len() {
            self.nodes[vm].body.borrow_mut().fails = None;
            self.resume(vm);
        }
        self.start_who_can();
    }
}
