//! Hooks on a machine: each hook is a separate process that outlives the replica, ends by itself, at its deadline or
//! when stopped, and leaves its outcome on the disk.

use std::rc::Rc;
use std::time::Duration;

use super::event_queue::QueuedEvent;
use super::random::Random;
use super::world::World;
use allclear_core::model::attempt::Outcome;
use allclear_core::model::hook_id::HookId;
use allclear_core::model::id::{AttemptId, EventId, VmName};
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::{Intent, Member, Phase, Role};

pub(super) type Key = (EventId, AttemptId);

/// Habits of hooks: each number is a percentage, and by default hooks behave correctly.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    pub fails: u64,
    pub hangs: u64,
    pub blocked: u64,
    pub unknown: u64,
    pub not_applicable: u64,
    /// Reports its end twice, the second time with another outcome.
    pub twice: u64,
    /// Asks for more time.
    pub extends: u64,
    /// The usual range of the duration, in milliseconds.
    pub takes: (u64, u64),
}

#[derive(Clone)]
pub(super) struct Program {
    pub(super) is_running: bool,
    pub(super) outcome: Outcome,
    /// The program ended with its machine, without an outcome.
    pub(super) is_lost: bool,
    pub(super) task: ProgramTask,
    pub(super) is_twice: bool,
    ends: Timestamp,
    deadline: Timestamp,
    /// The time of death after the request to stop.
    stops: Option<Timestamp>,
    turn: u32,
}

#[derive(Clone)]
pub(super) struct ProgramTask {
    pub(super) key: Key,
    pub(super) member: Member,
    pub(super) hook: HookId,
    pub(super) intent: Intent,
    pub(super) step: String,
    pub(super) prefer: Vec<VmName>,
    /// The time left, by the clocks of this machine.
    pub(super) left: Duration,
}

/// From the signal to stop until the kill.
const KILLED_AFTER: Duration = Duration::from_secs(5);

impl World {
    pub(super) fn start_program(self: &Rc<Self>, vm: usize, task: ProgramTask) {
        let (key, left) = (task.key.clone(), task.left);
        self.judge_begin(vm, &task);
        let good = Habits { takes: (100, 3000), ..Habits::default() };
        // A restore is required until it completes, so a restore completes in the end.
        let is_owed = task.hook.phase >= Phase::Restore && self.is_healed.get();
        let habits = if is_owed || self.judge.borrow().is_calm { good } else { self.scenario.habits };
        let mut random = Random::new(self.scenario.seed ^ (key.1.0 << 20));
        random.word();
        let (takes, outcome) = self.fate(&mut random, habits, &task);
        self.tell(|| {
            let ProgramTask { member, intent, hook, .. } = &task;
            format!("{}: a hook begins, {member} {} {intent} [{}]", self.nodes[vm].name, hook.phase, key.1)
        });
        let program = Program {
            is_running: true,
            is_lost: false,
            outcome,
            task,
            is_twice: random.percent(habits.twice),
            ends: takes.map_or(Timestamp(i64::MAX), |takes| self.now().plus(takes)),
            deadline: self.now().plus(left),
            stops: None,
            turn: 0,
        };
        self.nodes[vm].programs.borrow_mut().insert(key.clone(), program);
        self.watch_program(vm, &key);
        if random.percent(habits.extends)
            && let Some(here) = self.here(vm)
        {
            self.tasks.spawn(vm, super::replica_model::hooks::ask_for_more_time(here, key));
        }
    }

    /// The duration, unless the hook hangs, and the outcome.
    fn fate(&self, random: &mut Random, habits: Habits, task: &ProgramTask) -> (Option<Duration>, Outcome) {
        let (least, most) = habits.takes;
        let is_slow = random.percent(10) && !self.judge.borrow().is_calm;
        let takes = if is_slow { random.millis(most, most * 8) } else { random.millis(least, most) };
        if random.percent(habits.hangs) {
            return (None, Outcome::Done);
        }
        let ends = match task.intent {
            Intent::Confirm if random.percent(habits.unknown) => Outcome::Unknown("nobody can tell".into()),
            Intent::Confirm if self.judge.borrow().steps_done.contains(&task.step) => Outcome::Done,
            Intent::Confirm => Outcome::NotDone,
            Intent::Run | Intent::Undo => {
                let kinds = [
                    (habits.fails, Outcome::Failed("it could not".into())),
                    (habits.blocked, Outcome::Blocked("not now".into())),
                    (habits.unknown, Outcome::Unknown("nobody can tell".into())),
                    (if task.hook.phase < Phase::Restore { habits.not_applicable } else { 0 }, Outcome::NotApplicable),
                ];
                let bad: u64 = kinds.iter().map(|(weight, _)| weight).sum();
                if random.percent(bad) { random.weighted(&kinds) } else { Outcome::Done }
            }
        };
        (Some(takes), ends)
    }

    fn watch_program(&self, vm: usize, key: &Key) {
        let programs = self.nodes[vm].programs.borrow();
        let Some(program) = programs.get(key) else { return };
        let killed = program.deadline.plus(Duration::from_millis(100));
        let next = program.ends.min(killed).min(program.stops.unwrap_or(killed));
        let boot = self.nodes[vm].body.borrow().boot;
        let due = QueuedEvent::Program { vm, boot, key: key.clone(), turn: program.turn };
        self.put_in(next.since(self.now()), due);
    }

    pub(super) fn program_goes_on(self: &Rc<Self>, vm: usize, boot: u32, key: &Key, turn: u32) {
        let node = &self.nodes[vm];
        if node.body.borrow().boot != boot {
            return;
        }
        // A paused machine runs nothing.
        if node.body.borrow().pause.is_some_and(|pause| pause.stops_clock) {
            let due = QueuedEvent::Program { vm, boot, key: key.clone(), turn };
            return self.put_in(Duration::from_millis(200), due);
        }
        let now = self.now();
        let ended = {
            let mut programs = node.programs.borrow_mut();
            let Some(program) = programs.get_mut(key).filter(|it| it.is_running && it.turn == turn) else { return };
            if now < program.ends {
                let is_stopped = program.stops.is_some_and(|stops| now >= stops);
                program.outcome = if is_stopped {
                    Outcome::Cancelled
                } else {
                    Outcome::TimedOut("it did not end by its deadline".into())
                };
            }
            program.is_running = false;
            program.clone()
        };
        self.tell(|| format!("{}: a hook ends, {} [{}]", node.name, ended.outcome.as_str(), key.1));
        self.judge.borrow_mut().ended.insert(key.clone(), ended.outcome.clone());
        if ended.outcome == Outcome::Done {
            self.have_effect(&ended.task);
        }
        if let Some(process) = self.process(vm) {
            process.signals.programs.tell(&self.tasks);
        }
    }

    fn have_effect(&self, task: &ProgramTask) {
        if task.intent == Intent::Run && task.hook.phase == Phase::Restore {
            self.judge.borrow_mut().out.remove(&task.member);
        }
        match task.intent {
            Intent::Run => self.judge.borrow_mut().steps_done.insert(task.step.clone()),
            Intent::Undo => self.judge.borrow_mut().steps_done.remove(&task.step),
            Intent::Confirm => return,
        };
        let Some(home) = self.vm(&task.member.vm) else { return };
        if task.hook.phase == Phase::Failover && self.nodes[home].role.get() == Role::Primary {
            let next = task.prefer.iter().find_map(|name| self.vm(name));
            for (vm, role) in [(Some(home), Role::Replica), (next, Role::Primary)] {
                let Some(vm) = vm else { continue };
                self.nodes[vm].role.set(role);
                if let Some(process) = self.process(vm) {
                    process.signals.presence.tell(&self.tasks);
                }
            }
        }
    }

    pub(super) fn cancel_program(&self, vm: usize, key: &Key) {
        let takes = self.random.borrow_mut().millis(10, 5000).min(KILLED_AFTER);
        let is_news = {
            let mut programs = self.nodes[vm].programs.borrow_mut();
            let running = programs.get_mut(key).filter(|program| program.is_running && program.stops.is_none());
            running.map(|program| (program.stops, program.turn) = (Some(self.now().plus(takes)), program.turn + 1))
        };
        if is_news.is_some() {
            self.watch_program(vm, key);
        }
    }

    pub(super) fn change_deadline(&self, vm: usize, key: &Key, left: Duration) {
        let deadline = self.now().plus(left);
        let is_news = {
            let mut programs = self.nodes[vm].programs.borrow_mut();
            // Small differences are due to the clocks.
            let differs = |known: Timestamp| known.0.abs_diff(deadline.0) > 500;
            let running = programs.get_mut(key).filter(|program| program.is_running && differs(program.deadline));
            running.map(|program| (program.deadline, program.turn) = (deadline, program.turn + 1))
        };
        if is_news.is_some() {
            self.watch_program(vm, key);
        }
    }

    /// The machine goes down: its running programs are lost.
    pub(super) fn lose_programs(&self, vm: usize) {
        for program in self.nodes[vm].programs.borrow_mut().values_mut().filter(|program| program.is_running) {
            (program.is_running, program.is_lost) = (false, true);
            program.outcome = Outcome::Unknown("it was lost with its supervisor".into());
        }
    }
}
