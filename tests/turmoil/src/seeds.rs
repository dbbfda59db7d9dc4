//! Many seeds, each in a process of its own; and the checks of the simulation itself.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::world::Mistake;

/// Number of seeds within which a deliberate mistake must be found.
const FOUND_WITHIN: u64 = 10;
/// Number of seeds which are run twice.
const TWICE: u64 = 4;

struct Ran {
    /// `name=value`, as printed by the run.
    numbers: BTreeMap<String, String>,
    errors: String,
}

impl Ran {
    fn of(output: &Output) -> Self {
        let said = String::from_utf8_lossy(&output.stdout);
        let pairs = said.split_whitespace().filter_map(|word| word.split_once('='));
        let numbers = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { numbers, errors: String::from_utf8_lossy(&output.stderr).into_owned() }
    }

    fn verdict(&self) -> &str {
        self.numbers.get("verdict").map_or("Fail", String::as_str)
    }

    fn number(&self, name: &str) -> u64 {
        self.numbers.get(name).and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    fn trace(&self) -> (u64, u64) {
        (self.number("digest"), self.number("lines"))
    }
}

fn run(seed: u64, mistake: &str) -> Ran {
    let program = std::env::current_exe().expect("this program's own file");
    let output = Command::new(program).args(["silently", &seed.to_string(), mistake]).output();
    Ran::of(&output.expect("another process of this program"))
}

/// Runs as many seeds at once as the machine has processors.
fn each(seeds: impl Iterator<Item = u64> + Send, mistake: &str, ran: impl Fn(u64, Ran) + Sync) {
    let seeds = Mutex::new(seeds);
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let next = || seeds.lock().expect("nobody panics with it").next();
    std::thread::scope(|scope| {
        let worker = || {
            while let Some(seed) = next() {
                ran(seed, run(seed, mistake));
            }
        };
        // all workers but the last on their own threads
        (1..at_once).for_each(|_| drop(scope.spawn(worker)));
        worker();
    });
}

/// Numbers which are added up.
const ADDED: [&str; 9] = ["seconds", "entries", "acknowledged", "events", "posts", "hooks", "terms", "crash", "cut"];

pub(crate) fn all(first: u64, count: u64) -> ExitCode {
    let begun = uptime();
    let sums = Mutex::new(BTreeMap::<&str, u64>::new());
    let done = AtomicU64::new(0);
    let judge = |seed, ran: Ran| {
        let mut sums = sums.lock().expect("nobody panics with it");
        *sums
            .entry(match ran.verdict() {
                "Pass" => "passed",
                "Unknown" => "unknown",
                _ => "failed",
            })
            .or_default() += 1;
        for name in ADDED {
            *sums.entry(name).or_default() += ran.number(name);
        }
        if ran.verdict() == "Fail" {
            eprintln!("{}seed {seed} failed; run it alone: tests/turmoil/run seed {seed}", ran.errors);
        } else if ran.verdict() == "Unknown" {
            eprintln!("seed {seed} proves nothing: too little happened");
        }
        let done = done.fetch_add(1, Ordering::SeqCst) + 1;
        if done.is_multiple_of(20) {
            println!("{done} of {count} seeds in {:.0} s", uptime() - begun);
        }
    };
    each(first..first.saturating_add(count), "none", judge);
    let sums = sums.into_inner().expect("nobody panics with it");
    let shown: Vec<String> = sums.iter().map(|(name, sum)| format!("{name} {sum}")).collect();
    println!("{count} seeds from {first} in {:.0} s: {}", uptime() - begun, shown.join(", "));
    if sums.contains_key("failed") { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Checks determinism, one seed is one run in any process, and the detection of every deliberate mistake.
pub(crate) fn check() -> ExitCode {
    let wrong = Mutex::new(Vec::new());
    let twice = |seed, first: Ran| {
        let second = run(seed, "none");
        println!("seed {seed}: {:?} and {:?}", first.trace(), second.trace());
        if first.trace() != second.trace() || first.trace().1 == 0 {
            wrong.lock().expect("nobody panics with it").push(format!("seed {seed} gave two different runs"));
        }
    };
    each(1..=TWICE, "none", twice);
    for (mistake, _) in Mistake::ALL.into_iter().filter(|(_, kind)| *kind != Mistake::None) {
        match (1..=FOUND_WITHIN).find(|seed| run(*seed, mistake).verdict() == "Fail") {
            Some(seed) => println!("{mistake} is found by seed {seed}"),
            None => wrong.lock().expect("nobody panics with it").push(format!("{mistake} is not found")),
        }
    }
    let wrong = wrong.into_inner().expect("nobody panics with it");
    for wrong in &wrong {
        eprintln!("{wrong}");
    }
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Seconds since the machine started. The clocks of this program are the simulation's clocks, even outside the
/// simulation.
fn uptime() -> f64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    text.split_whitespace().next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0.0)
}
