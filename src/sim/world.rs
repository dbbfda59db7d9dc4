//! One world: its time, its machines, the committed entries, and the event loop.

mod windows;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use self::windows::Window;
use super::cloud::{Cloud, PlatformBehaviour, Vm};
use super::endpoint::EndpointState;
use super::event_queue::{Agenda, QueuedEvent};
use super::mutation::Mutation;
use super::node_state::Node;
use super::oracle::Oracle;
use super::raft_model::{Chain, ModelMembers};
use super::random::Random;
use super::replica_model::ProcessState;
use super::scenario::{Scenario, TriggerPoint};
use super::tasks::Tasks;
use super::verdict::{Breach, Property, RunVerdict, SimulationRun};
use allclear_core::model::id::VmName;
use allclear_core::model::time::Timestamp;

/// The start time of every world: any timestamp other than 0.
pub(super) const BEGIN: Timestamp = Timestamp(1_760_000_000_000);
/// The limit of the run time after everything has healed.
const LONGEST: Duration = Duration::from_mins(90);

pub(super) struct World {
    pub(super) scenario: Scenario,
    pub(super) mutation: Mutation,
    now: Cell<Timestamp>,
    agenda: RefCell<Agenda>,
    pub(super) tasks: Tasks,
    pub(super) nodes: Vec<Node>,
    pub(super) chain: RefCell<Chain>,
    pub(super) cloud: RefCell<Cloud>,
    pub(super) endpoints: RefCell<Vec<EndpointState>>,
    pub(super) random: RefCell<Random>,
    /// Faults that last, each with its end, and whether the fault has had an effect.
    windows: RefCell<Vec<Window>>,
    /// Whether each step of the scenario has had an effect.
    effects: RefCell<Vec<bool>>,
    pub(super) is_healed: Cell<bool>,
    pub(super) judge: RefCell<Oracle>,
    breach: RefCell<Option<Breach>>,
    pub(super) counts: Counts,
    trace: RefCell<Option<Vec<String>>>,
    digest: Cell<u64>,
    is_over: Cell<bool>,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) alone: Cell<usize>,
    pub(super) claims: Cell<u32>,
    pub(super) begun: Cell<u32>,
    pub(super) confirmed: Cell<u32>,
    pub(super) posted: Cell<u32>,
}

impl World {
    pub(super) fn new(scenario: &Scenario, mutation: Mutation, is_traced: bool) -> Rc<Self> {
        let names: Vec<VmName> = (0..scenario.replicas).map(name).collect();
        let members = Rc::new(ModelMembers::first(scenario.replicas, scenario.voters));
        let vms = names.iter().map(|name| Vm { name: name.clone(), zone: None });
        let cloud = Cloud::new(
            vms,
            PlatformBehaviour { first_incarnation: 1000, ..PlatformBehaviour::default() },
            scenario.seed,
            BEGIN,
        );
        let node = |(vm, name): (usize, &VmName)| {
            let ahead = scenario.clocks.get(vm).copied().unwrap_or(0);
            Node::new(name.clone(), ahead, members.clone(), scenario.workloads[vm].clone())
        };
        Rc::new(Self {
            mutation,
            now: Cell::new(BEGIN),
            agenda: RefCell::default(),
            tasks: Tasks::default(),
            nodes: names.iter().enumerate().map(node).collect(),
            chain: RefCell::default(),
            cloud: RefCell::new(cloud),
            endpoints: RefCell::new((0..scenario.replicas).map(|_| EndpointState::default()).collect()),
            random: RefCell::new(Random::new(scenario.seed ^ 0xA076_1D64_78BD_642F)),
            windows: RefCell::default(),
            effects: RefCell::new(vec![false; scenario.happenings.len()]),
            is_healed: Cell::new(false),
            judge: RefCell::default(),
            breach: RefCell::default(),
            counts: Counts::default(),
            trace: RefCell::new(is_traced.then(Vec::new)),
            digest: Cell::new(0),
            is_over: Cell::new(false),
            scenario: scenario.clone(),
        })
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now.get()
    }

    pub(super) fn put_in(&self, span: Duration, due: QueuedEvent) {
        self.agenda.borrow_mut().put(self.now().plus(span), due);
    }

    pub(super) fn process(&self, vm: usize) -> Option<Rc<ProcessState>> {
        self.nodes[vm].process.borrow().clone()
    }

    pub(super) fn vm(&self, name: &VmName) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == *name)
    }

    /// Processes events until none is left, time is up, or a property is broken.
    pub(super) fn run(self: &Rc<Self>) {
        let Scenario { replicas, voters, max_unavailable, heal_at, policy, .. } = &self.scenario;
        self.tell(|| {
            let budget = policy.user_budget;
            format!(
                "{replicas} replicas, {voters} vote, a group loses at most {max_unavailable}, user budget {budget:?}, heals \
                 at {heal_at:?}"
            )
        });
        for (place, happening) in self.scenario.happenings.iter().enumerate() {
            if happening.after.is_none() {
                self.put_in(happening.at, QueuedEvent::Happening(place));
            }
        }
        self.put_in(Duration::from_secs(1), QueuedEvent::Judge);
        self.put_in(self.scenario.heal_at, QueuedEvent::Heal);
        self.put_in(Duration::from_millis(100), QueuedEvent::Cloud);
        for vm in 0..self.nodes.len() {
            self.start(vm);
        }
        let end = BEGIN.plus(self.scenario.heal_at).plus(LONGEST);
        while !self.is_over.get() && !self.is_broken() {
            let next = self.agenda.borrow_mut().next();
            let Some((at, order, due)) = next.filter(|(at, ..)| *at <= end) else { break };
            self.now.set(self.now().max(at));
            let mixed = self.digest.get() ^ order ^ at.0.unsigned_abs();
            self.digest.set(mixed.wrapping_mul(0x0000_0100_0000_01B3).rotate_left(17));
            self.take(due);
            self.tasks.run(|vm| self.nodes[vm].is_paused());
            self.bury_the_doomed();
        }
        if !self.is_broken() {
            self.judge_the_end(self.is_over.get());
        }
        for vm in 0..self.nodes.len() {
            self.tasks.end(vm);
            self.nodes[vm].process.take();
        }
    }

    fn take(self: &Rc<Self>, due: QueuedEvent) {
        // An event for a paused machine is held.
        if let Some(vm) = due.of()
            && self.nodes[vm].is_paused()
        {
            return self.hold(vm, due);
        }
        let lives = |vm: usize, life: u32| self.nodes[vm].is_up() && self.nodes[vm].life() == life;
        match due {
            QueuedEvent::Wake(task) => self.tasks.wake(task),
            QueuedEvent::Deliver(envelope) => self.deliver(*envelope),
            QueuedEvent::Tick { vm, life, number } => {
                if lives(vm, life) && self.nodes[vm].agreement.borrow().ticks == number {
                    self.tick(vm);
                }
            }
            QueuedEvent::Apply { vm, life } => {
                if lives(vm, life) {
                    self.apply(vm);
                }
            }
            QueuedEvent::Program { vm, boot, key, turn } => self.program_goes_on(vm, boot, &key, turn),
            QueuedEvent::Arrive(letter) => self.arrive(*letter),
            QueuedEvent::Happening(place) => self.happen(place),
            QueuedEvent::Resume { vm, number } => {
                if self.nodes[vm].body.borrow().downs == number {
                    self.resume(vm);
                }
            }
            QueuedEvent::Restart { vm, number } => {
                if self.nodes[vm].body.borrow().downs == number {
                    self.start(vm);
                }
            }
            QueuedEvent::Cloud => self.look_at_the_cloud(),
            QueuedEvent::Heal => self.heal(),
            QueuedEvent::Judge => self.judge_progress(),
        }
    }

    fn hold(&self, vm: usize, due: QueuedEvent) {
        let mut body = self.nodes[vm].body.borrow_mut();
        let is_lost = body.pause.is_some_and(|pause| self.now().since(pause.since) > pause.holds);
        if !is_lost || !matches!(due, QueuedEvent::Deliver(_)) {
            body.held.push(due);
        }
    }

    /// Processes the events that were held during a pause.
    pub(super) fn take_held(self: &Rc<Self>, held: Vec<QueuedEvent>) {
        for due in held {
            self.take(due);
        }
    }

    /// The first breach counts.
    pub(super) fn broke(&self, property: Property, what: String) {
        self.tell(|| format!("BROKEN {property:?}: {what}"));
        self.breach.borrow_mut().get_or_insert(Breach { property, what, at: self.now() });
    }

    pub(super) fn is_broken(&self) -> bool {
        self.breach.borrow().is_some()
    }

    pub(super) fn end(&self) {
        self.is_over.set(true);
    }

    /// Appends a line to the trace; costs nothing without a trace.
    pub(super) fn tell(&self, what: impl FnOnce() -> String) {
        if let Some(trace) = self.trace.borrow_mut().as_mut() {
            let at = self.now().since(BEGIN).as_secs_f64();
            trace.push(format!("{at:>9.3}  {}", what()));
        }
    }

    /// Counts a trigger point, for which steps of the scenario may wait.
    pub(super) fn come(&self, times: &Cell<u32>, moment: impl Fn(u32) -> TriggerPoint) {
        times.set(times.get() + 1);
        let come = moment(times.get());
        let waits = self.scenario.happenings.iter().enumerate().filter(|(_, it)| it.after == Some(come));
        for (place, happening) in waits {
            self.put_in(happening.at, QueuedEvent::Happening(place));
        }
    }

    pub(super) fn result(&self) -> SimulationRun {
        let (faults, effective) = (self.scenario.faults(), self.effective());
        let verdict = match self.breach.borrow().clone() {
            Some(breach) => RunVerdict::Failed(breach),
            None if faults > 0 && effective == 0 => RunVerdict::Unknown,
            None => RunVerdict::Passed,
        };
        SimulationRun {
            verdict,
            simulated: self.now().since(BEGIN),
            faults,
            effective,
            alone: self.counts.alone.get(),
            digest: self.digest.get(),
            trace: self.trace.borrow_mut().take().unwrap_or_default(),
        }
    }
}

pub(super) fn name(vm: usize) -> VmName {
    VmName::new(&format!("db-{vm}"))
}
