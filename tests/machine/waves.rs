//! A wave of maintenance goes through the VMs of one group, one fault domain after the other, in every order: how often
//! the primary moves, and to which VM. Plan, apply and assignments are the real code; the hooks and the cloud are
//! simulated.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use allclear::core::assignments::{Assignment, assignments, preferred_vms};
use allclear::core::model::attempt::{Attempt, Outcome};
use allclear::core::model::claim::PostOutcome;
use allclear::core::model::command::{Command, FinishAttempt, RecordPost, ReportDocument, UpdateConditions};
use allclear::core::model::document::{Announcement, Document, EventType, NotBefore, Source, Status};
use allclear::core::model::event::Event;
use allclear::core::model::id::{AttemptId, EventId, VmName, WorkloadName};
use allclear::core::model::time::Timestamp;
use allclear::core::model::workload::{Condition, Phase, Role};
use allclear::core::plan::plan;

use crate::machine::world::World;

const VMS: [&str; 3] = ["db-0", "db-1", "db-2"];
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
const NOTICE: Duration = Duration::from_mins(15);
const IMPACT: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_secs(1);
const STEPS_AT_MOST: usize = 600;

/// Time of an event's announcement, relative to the event before.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Announced {
    Together,
    WhenStarted,
    WhenOver,
}

const GAPS: [Announced; 3] = [Announced::Together, Announced::WhenStarted, Announced::WhenOver];

/// Choice of a failover hook among the preferred VMs.
type Choice = fn(&[VmName]) -> Option<&VmName>;

struct Wave {
    world: World,
    source: Source,
    /// The VMs in the order of their events, and when each event is announced.
    victims: Vec<(VmName, Announced)>,
    primary: VmName,
    choice: Choice,
    moves: usize,
    /// The events listed by the cloud, by their place in the order.
    listed: BTreeMap<usize, Status>,
    over: BTreeSet<usize>,
    started: BTreeMap<usize, Timestamp>,
}

impl Wave {
    fn new(order: [usize; 3], gaps: [Announced; 2], primary: usize, source: Source, choice: Choice) -> Self {
        let mut world = World::new();
        obey(&mut world, &format!("cluster {}", VMS.join(" ")));
        obey(&mut world, "workload * pg group=g: failover; drain; restore");
        let gaps = [Announced::Together].into_iter().chain(gaps);
        let victims = order.into_iter().map(|place| VmName::new(VMS[place])).zip(gaps).collect();
        let mut wave = Self {
            world,
            source,
            victims,
            primary: VmName::new(VMS[primary]),
            choice,
            moves: 0,
            listed: BTreeMap::new(),
            over: BTreeSet::new(),
            started: BTreeMap::new(),
        };
        wave.note_roles();
        wave
    }

    /// Runs the wave to the end and counts the moves.
    fn play(mut self) -> Result<usize, String> {
        for _ in 0..STEPS_AT_MOST {
            self.move_cloud();
            self.report();
            for _ in 0..10 {
                let due = plan(&self.world.state, &self.world.input);
                if due.is_empty() && !self.act() {
                    break;
                }
                let leader = self.world.input.me.clone();
                for command in due {
                    self.commit(&leader, command)?;
                }
            }
            if let Some(place) = self.started.keys().find(|place| self.victims[**place].0 == self.primary) {
                return Err(format!("the primary is on {} while it is gone", self.victims[*place].0));
            }
            if self.over.len() == self.victims.len() && self.world.state.open.is_empty() {
                return Ok(self.moves);
            }
            self.world.input.now = self.world.input.now.plus(STEP);
        }
        Err("it never ends".into())
    }

    fn move_cloud(&mut self) {
        let now = self.world.input.now;
        let ended: Vec<usize> =
            self.started.iter().filter(|(_, since)| now.since(**since) >= IMPACT).map(|(place, _)| *place).collect();
        for place in ended {
            self.started.remove(&place);
            self.listed.remove(&place);
            self.over.insert(place);
            self.reach(place, true);
        }
        for place in 0..self.victims.len() {
            let is_known = self.listed.contains_key(&place) || self.over.contains(&place);
            let before = place.checked_sub(1);
            let is_due = match (before, self.victims[place].1) {
                (None, _) => true,
                (Some(before), Announced::Together) => self.listed.contains_key(&before) || self.over.contains(&before),
                (Some(before), Announced::WhenStarted) => {
                    self.started.contains_key(&before) || self.over.contains(&before)
                }
                (Some(before), Announced::WhenOver) => self.over.contains(&before) && self.is_closed(before),
            };
            if is_due && !is_known {
                self.listed.insert(place, Status::Scheduled);
            }
        }
    }

    fn is_closed(&self, place: usize) -> bool {
        !self.world.state.open.contains_key(&id(place))
    }

    fn start(&mut self, place: usize) {
        self.started.insert(place, self.world.input.now);
        self.listed.insert(place, Status::Started);
        self.reach(place, false);
    }

    fn reach(&mut self, place: usize, reachable: bool) {
        let word = if reachable { "reachable" } else { "unreachable" };
        let line = format!("{word} {}", self.victims[place].0);
        obey(&mut self.world, &line);
        // Leadership leaves the VM before the VM is gone.
        let input = &self.world.input;
        if let Some(heir) = input.members.iter().find(|name| input.reaches(name)).cloned() {
            self.world.input.me = heir;
        }
    }

    /// Every running VM reports the events listed now.
    fn report(&mut self) {
        let events = self.listed.iter().map(|(place, status)| Announcement {
            id: id(*place),
            status: status.clone(),
            kind: EventType::Redeploy,
            source: self.source.clone(),
            resource_type: "VirtualMachine".into(),
            resources: vec![self.victims[*place].0.clone()],
            not_before: NotBefore::At(Timestamp(0).plus(NOTICE + Duration::from_mins(*place as u64))),
            description: String::new(),
            duration: None,
        });
        let document = Document::new(events.collect());
        for vm in VMS.map(VmName::new) {
            let replica = &self.world.state.replicas[&vm];
            if self.world.input.reaches(&vm) && replica.document.as_ref() != Some(&document) {
                let after = replica.reports;
                self.world.commit(&vm, Command::ReportDocument(ReportDocument { after, document: document.clone() }));
            }
        }
    }

    /// Every running VM carries out its assignments; false if there were none.
    fn act(&mut self) -> bool {
        let mut has_acted = false;
        for vm in VMS.map(VmName::new) {
            if !self.world.input.reaches(&vm) {
                continue;
            }
            let state = self.world.state.clone();
            for errand in assignments(&state, &vm) {
                has_acted = true;
                match errand {
                    Assignment::Run { event, attempt, .. } => {
                        let outcome = self.run_hook(attempt);
                        self.settle(&vm, event, attempt, outcome);
                    }
                    Assignment::Cancel { event, attempt } => self.settle(&vm, event, attempt, Outcome::Cancelled),
                    Assignment::Post { event, claim } => self.post(&vm, event, claim.attempt),
                }
            }
        }
        has_acted
    }

    fn run_hook(&mut self, attempt: &Attempt) -> Outcome {
        if attempt.hook.phase != Phase::Failover {
            return Outcome::Done;
        }
        if attempt.member.vm != self.primary {
            return Outcome::NotApplicable;
        }
        let preferred = preferred_vms(&self.world.state, &self.world.input, &attempt.member);
        let Some(chosen) = (self.choice)(&preferred) else {
            return Outcome::Blocked("no healthy standby".into());
        };
        self.primary = chosen.clone();
        self.moves += 1;
        self.note_roles();
        Outcome::Done
    }

    fn note_roles(&mut self) {
        for vm in VMS.map(VmName::new) {
            let role = if vm == self.primary { Role::Primary } else { Role::Replica };
            let conditions = vec![(WorkloadName("pg".into()), Condition { role, ..Condition::default() })];
            self.world.commit(&vm, Command::UpdateConditions(UpdateConditions { conditions }));
        }
    }

    fn settle(&mut self, vm: &VmName, event: &Event, attempt: &Attempt, outcome: Outcome) {
        let event = event.announcement.id.clone();
        self.world.commit(vm, Command::FinishAttempt(FinishAttempt { event, attempt: attempt.id, outcome }));
    }

    fn post(&mut self, vm: &VmName, event: &Event, attempt: AttemptId) {
        let event = event.announcement.id.clone();
        let place = (0..self.victims.len()).find(|place| id(*place) == event);
        self.world.commit(vm, Command::RecordPost(RecordPost { event, attempt, outcome: PostOutcome::Accepted }));
        if let Some(place) = place {
            self.start(place);
        }
    }

    fn commit(&mut self, by: &VmName, command: Command) -> Result<(), String> {
        let answer = self.world.commit(by, command);
        if answer.contains("VIOLATED") { Err(answer) } else { Ok(()) }
    }
}

fn obey(world: &mut World, line: &str) {
    let answer = world.obey(line);
    assert!(answer.is_ok(), "{line}: {answer:?}");
}

fn id(place: usize) -> EventId {
    EventId::new(&format!("e{place}"))
}

/// The moves of every order, and how each wave was composed. A wave is played when its moves are asked for.
fn play_all(choice: Choice) -> impl Iterator<Item = (String, Result<usize, String>)> {
    let mut waves = Vec::new();
    for order in ORDERS {
        for first in GAPS {
            for second in GAPS {
                for primary in 0..VMS.len() {
                    for source in [Source::Platform, Source::User] {
                        waves.push((order, [first, second], primary, source));
                    }
                }
            }
        }
    }
    waves.into_iter().map(move |(order, gaps, primary, source)| {
        let name = format!("{order:?}, {gaps:?}, primary on {primary}, {source}");
        (name, Wave::new(order, gaps, primary, source, choice).play())
    })
}

#[test]
fn a_wave_moves_the_primary_twice_at_the_most_in_every_order() {
    for (name, moves) in play_all(<[VmName]>::first) {
        assert!(matches!(moves, Ok(0..=2)), "{name}: {moves:?}");
    }
}

#[test]
fn a_primary_that_is_moved_to_the_next_victim_moves_more_often() {
    let mut played = play_all(<[VmName]>::last);
    assert!(played.any(|(_, moves)| moves == Ok(3)), "the preference makes no difference");
}
