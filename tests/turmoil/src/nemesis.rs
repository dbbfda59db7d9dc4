//! Faults from outside: crashes, cut and slow links, held messages, a metadata service which fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use allclear::core::model::id::VmName;
use allclear::core::model::time::Timestamp;
use turmoil::Sim;

use crate::dice::Dice;
use crate::platform::Ailment;
use crate::world::{Glance, Mistake, World, ahead};

/// Time after which a service manager restarts a replica which has ended.
const START_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Maximum number of simultaneous faults.
const AT_ONCE: usize = 3;
/// Interval of checks for the effects of events on machines.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Maximum loss of a lying disk.
const COPY_EVERY: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
enum Fault {
    Crash(BTreeSet<usize>),
    /// Messages from the first to the second are lost.
    Cut(BTreeSet<(usize, usize)>),
    /// Messages wait until the fault is over.
    Hold(usize, usize),
    Slow(usize, usize),
    Ailing(usize, Ailment),
    /// No message reaches or leaves the host, and the host's disk and metadata service stall, until the fault is over:
    /// then all messages come at once. The host's timers go on: whole hosts cannot be stopped here, since turmoil lets
    /// each host run.
    Stall(usize),
    /// The host's wall clock is ahead by this number of milliseconds, or behind, instead of the previous offset.
    Clock(usize, i64),
}

impl Fault {
    const fn word(&self) -> &'static str {
        match self {
            Self::Crash(_) => "crash",
            Self::Cut(_) => "cut",
            Self::Hold(..) => "hold",
            Self::Slow(..) => "slow",
            Self::Ailing(..) => "ailing",
            Self::Clock(..) => "clock",
            Self::Stall(_) => "stall",
        }
    }
}

struct Active {
    fault: Fault,
    until: Duration,
    /// An effect of the fault was observed.
    told: bool,
    term: u64,
}

pub(crate) struct Nemesis<'s> {
    pub(crate) sim: Sim<'s>,
    world: Arc<World>,
    names: Vec<String>,
    dice: Dice,
    active: Vec<Active>,
    next: Duration,
    /// Restart time of each host which is down; none while an event keeps the machine down.
    down: BTreeMap<usize, Option<Duration>>,
    looked: Duration,
    copied: Duration,
    /// Count of each kind of fault: tried, and observed to have an effect.
    pub(crate) tally: BTreeMap<&'static str, (u32, u32)>,
}

impl<'s> Nemesis<'s> {
    pub(crate) fn new(sim: Sim<'s>, world: Arc<World>, seed: u64) -> Self {
        Self {
            sim,
            names: world.names(),
            world,
            dice: Dice::of(seed, "nemesis"),
            active: Vec::new(),
            next: Duration::ZERO,
            down: BTreeMap::new(),
            looked: Duration::ZERO,
            copied: Duration::ZERO,
            tally: BTreeMap::new(),
        }
    }

    /// Regular work of machines and their service managers.
    pub(crate) fn tend(&mut self) {
        let now = self.sim.elapsed();
        let ended: Vec<usize> =
            self.world.hosts().iter().enumerate().filter(|(_, host)| host.ended.is_some()).map(|(at, _)| at).collect();
        for place in ended {
            self.crash(place, Some(now + START_AGAIN_AFTER));
        }
        if !self.world.manner.is_quiet && now >= self.looked + LOOK_EVERY {
            self.looked = now;
            self.interrupt(now);
        }
        let due: Vec<usize> =
            self.down.iter().filter(|(_, at)| at.is_some_and(|at| at <= now)).map(|(place, _)| *place).collect();
        for place in due {
            self.start(place);
        }
        if self.world.mistake == Mistake::LyingDisks && now >= self.copied + COPY_EVERY {
            self.copied = now;
            for host in self.world.hosts().iter() {
                copy(&host.folder, &host.folder.with_extension("old"));
            }
        }
    }

    /// Begins and ends faults as the seed decides.
    pub(crate) fn act(&mut self) {
        let now = self.sim.elapsed();
        self.watch();
        if self.active.iter().any(|active| active.until <= now) {
            self.end(|active| active.until <= now);
        }
        if now < self.next {
            return;
        }
        self.next = now + self.dice.millis(500, 9_000);
        if self.active.len() < AT_ONCE {
            let (fault, lasts) = self.made_up();
            self.begin(fault, now + lasts);
        }
    }

    /// Everything works from now on.
    pub(crate) fn heal(&mut self) {
        self.end(|_| true);
        self.world.platform.heal();
        for place in self.down.keys().copied().collect::<Vec<_>>() {
            self.start(place);
        }
        self.world.trace.line(format_args!("everything works again"));
    }

    fn made_up(&self) -> (Fault, Duration) {
        let dice = &self.dice;
        let count = self.names.len() as u64;
        let place = || usize::try_from(dice.below(count)).unwrap_or(0);
        if self.world.mistake == Mistake::LyingDisks {
            return (Fault::Crash((0..self.names.len()).collect()), dice.millis(500, 2_000));
        }
        let one = place();
        let other = (one + 1 + usize::try_from(dice.below(count - 1)).unwrap_or(0)) % self.names.len();
        let others = (0..self.names.len()).filter(|place| *place != one);
        let outward = others.clone().map(|other| (one, other));
        let inward = others.map(|other| (other, one));
        match dice.below(14) {
            0..3 => (Fault::Crash([one].into()), dice.millis(200, 12_000)),
            3 => (Fault::Crash([one, other].into()), dice.millis(200, 8_000)),
            4 => (Fault::Crash((0..self.names.len()).collect()), dice.millis(200, 3_000)),
            5..7 => (Fault::Cut(outward.chain(inward).collect()), dice.millis(500, 25_000)),
            7 => (Fault::Cut([(one, other), (other, one)].into()), dice.millis(500, 20_000)),
            8 => (
                Fault::Cut(if dice.percent(50) { outward.collect() } else { inward.collect() }),
                dice.millis(500, 15_000),
            ),
            9 => (Fault::Hold(one, other), dice.millis(200, 4_000)),
            10 => (Fault::Slow(one, other), dice.millis(2_000, 15_000)),
            11 => (Fault::Stall(one), dice.millis(300, 12_000)),
            12 => {
                let most = *dice.pick(&[500, 10_000, 120_000]);
                (Fault::Clock(one, ahead(dice, most)), dice.millis(500, 20_000))
            }
            _ => {
                let ailment = *dice.pick(&[Ailment::Silent, Ailment::Empty, Ailment::Failing]);
                (Fault::Ailing(one, ailment), dice.millis(3_000, 40_000))
            }
        }
    }

    fn begin(&mut self, fault: Fault, until: Duration) {
        self.world.trace.line(format_args!("fault until {}: {fault:?}", until.as_millis()));
        let mut told = false;
        match &fault {
            Fault::Crash(places) => {
                for place in places {
                    told |= self.crash(*place, Some(until));
                }
            }
            Fault::Ailing(place, ailment) => {
                self.world.platform.ail(&VmName::new(&self.names[*place]), Some(*ailment));
                told = true;
            }
            Fault::Cut(_) => {}
            Fault::Clock(place, ahead) => {
                told = self.world.ahead(*place) != *ahead;
                self.world.set_clock(*place, *ahead);
            }
            Fault::Stall(place) => {
                self.stall(*place, true);
                told = true;
            }
            Fault::Hold(one, other) => {
                self.sim.hold(self.names[*one].as_str(), self.names[*other].as_str());
                told = true;
            }
            Fault::Slow(one, other) => {
                self.latency(*one, *other, self.dice.millis(50, 300));
                told = true;
            }
        }
        self.tally.entry(fault.word()).or_default().0 += 1;
        if told {
            self.tally.entry(fault.word()).or_default().1 += 1;
        }
        let term = self.term();
        self.active.push(Active { fault, until, told, term });
        self.cut();
    }

    fn end(&mut self, is_over: impl Fn(&Active) -> bool) {
        let (over, active): (Vec<_>, Vec<_>) = core::mem::take(&mut self.active).into_iter().partition(is_over);
        self.active = active;
        for Active { fault, .. } in over {
            self.world.trace.line(format_args!("over: {fault:?}"));
            match fault {
                // A clock keeps its offset after a jump.
                Fault::Crash(_) | Fault::Cut(_) | Fault::Clock(..) => {}
                Fault::Stall(place) => self.stall(place, false),
                Fault::Hold(one, other) => self.sim.release(self.names[one].as_str(), self.names[other].as_str()),
                Fault::Slow(one, other) => self.latency(one, other, self.world.manner.latency),
                Fault::Ailing(place, _) => self.world.platform.ail(&VmName::new(&self.names[place]), None),
            }
        }
        self.cut();
    }

    fn stall(&self, place: usize, stalls: bool) {
        self.world.set_stalls(place, stalls);
        for other in (0..self.names.len()).filter(|other| *other != place) {
            let (from, to) = (self.names[place].as_str(), self.names[other].as_str());
            if stalls {
                self.sim.hold(from, to);
            } else {
                self.sim.release(from, to);
            }
        }
    }

    fn latency(&self, one: usize, other: usize, most: Duration) {
        self.sim.set_link_max_message_latency(self.names[one].as_str(), self.names[other].as_str(), most);
    }

    /// Sets all links as the faults require; a held link is left alone.
    fn cut(&self) {
        let is_held = |one, other| {
            self.active.iter().any(|active| match active.fault {
                Fault::Hold(a, b) => (a, b) == (one, other) || (b, a) == (one, other),
                Fault::Stall(place) => place == one || place == other,
                _ => false,
            })
        };
        for one in 0..self.names.len() {
            for other in (0..self.names.len()).filter(|other| *other != one && !is_held(one, *other)) {
                let (from, to) = (self.names[one].as_str(), self.names[other].as_str());
                let is_cut =
                    |active: &Active| matches!(&active.fault, Fault::Cut(links) if links.contains(&(one, other)));
                if self.active.iter().any(is_cut) {
                    self.sim.partition_oneway(from, to);
                } else {
                    self.sim.repair_oneway(from, to);
                }
            }
        }
    }

    /// Counts a cut as effective only when a replica noticed the cut.
    fn watch(&mut self) {
        let term = self.term();
        let is_leaderless = self.world.hosts().iter().any(|host| host.ended.is_none() && !host.glance.has_leader);
        for active in &mut self.active {
            let noticed = is_leaderless || active.term != term;
            if !active.told && matches!(active.fault, Fault::Cut(_)) && noticed {
                active.told = true;
                self.tally.entry("cut").or_default().1 += 1;
            }
        }
    }

    pub(crate) fn term(&self) -> u64 {
        self.world.hosts().iter().map(|host| host.glance.term).max().unwrap_or(0)
    }

    /// An event keeps its machines down until the event is over.
    fn interrupt(&mut self, now: Duration) {
        let now_on_the_wall = Timestamp(i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
        let interrupted = self.world.platform.interrupted(now_on_the_wall);
        for place in 0..self.names.len() {
            let is_interrupted = interrupted.contains(&VmName::new(&self.names[place]));
            match self.down.get(&place) {
                None if is_interrupted => {
                    self.world.trace.line(format_args!("an event takes {} down", self.names[place]));
                    self.crash(place, None);
                }
                Some(None) if !is_interrupted => self.start(place),
                _ => {}
            }
        }
    }

    /// Crashes a host. Data on the disk stays as of this moment; later writes of the dying process do not count. False
    /// if the host was down already.
    fn crash(&mut self, place: usize, until: Option<Duration>) -> bool {
        if let Some(at) = self.down.get_mut(&place) {
            *at = at.and_then(|at| Some(at.max(until?)));
            return false;
        }
        let name = self.names[place].clone();
        self.world.trace.line(format_args!("{name} crashes"));
        let (folder, life) = {
            let host = &self.world.hosts()[place];
            (host.folder.clone(), host.lives + 1)
        };
        let next = folder.with_extension(life.to_string());
        let old = folder.with_extension("old");
        copy(if old.exists() { &old } else { &folder }, &next);
        self.sim.crash(name.as_str());
        let _ = fs::remove_dir_all(&folder);
        self.world.change(place, |host| {
            (host.folder, host.lives, host.ended, host.glance) = (next, life, None, Glance::default());
        });
        self.down.insert(place, until);
        true
    }

    fn start(&mut self, place: usize) {
        self.down.remove(&place);
        self.sim.bounce(self.names[place].as_str());
    }
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    let Ok(entries) = fs::read_dir(from) else { return };
    fs::create_dir_all(to).expect("a folder for the next life");
    for entry in entries.flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a file for the next life");
        }
    }
}
