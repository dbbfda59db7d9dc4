//! Many seeds, on every core, and what they came to.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::{Exit, explain, say};
use crate::replica::clock;
use crate::simulator::{self, Mistake, Run, Verdict};

/// Failures that are explained; more of them say the same.
const EXPLAINED: usize = 3;
const TOLD_EVERY: Duration = Duration::from_secs(15);

#[derive(Default)]
struct Sum {
    seeds: u64,
    unknown: u64,
    failed: Vec<(u64, Run)>,
    simulated: Duration,
    faults: usize,
    elections: u64,
    entries: usize,
    events: usize,
    posts: usize,
    alone: usize,
    hooks: usize,
}

/// So many seeds, or for so many minutes.
pub(super) fn soak(from: u64, seeds: Option<u64>, minutes: Option<u64>) -> Exit {
    let (next, stop) = (AtomicU64::new(from), AtomicBool::new(false));
    let end = seeds.map_or(u64::MAX, |seeds| from.saturating_add(seeds));
    let began = clock::steady();
    let until = minutes.map(|minutes| began.plus(Duration::from_secs(minutes * 60)));
    let (results, came) = mpsc::channel();
    let mut sum = Sum::default();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            let (results, next, stop) = (results.clone(), &next, &stop);
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let run = simulator::run(&simulator::generate(seed), Mistake::None, false);
                    if results.send((seed, run)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(results);
        let mut told = began;
        for (seed, run) in came {
            sum.add(seed, run);
            let now = clock::steady();
            if now.since(told) >= TOLD_EVERY {
                told = now;
                say(sum.line(now.since(began)));
            }
            if until.is_some_and(|until| now >= until) {
                stop.store(true, Ordering::Relaxed);
            }
        }
    });
    say(sum.line(clock::steady().since(began)));
    sum.failed.sort_by_key(|(seed, _)| *seed);
    for (seed, run) in sum.failed.iter().take(EXPLAINED) {
        explain(&simulator::generate(*seed), run);
    }
    if sum.failed.len() > EXPLAINED {
        let seeds: Vec<String> = sum.failed.iter().skip(EXPLAINED).take(50).map(|(seed, _)| seed.to_string()).collect();
        say(format_args!("and {} more: {}", sum.failed.len() - EXPLAINED, seeds.join(" ")));
    }
    if sum.failed.is_empty() { Exit::Done } else { Exit::Failed }
}

impl Sum {
    fn add(&mut self, seed: u64, run: Run) {
        self.seeds += 1;
        self.simulated += run.simulated;
        self.faults += run.effective;
        self.elections += run.elections;
        self.entries += run.entries;
        self.events += run.events;
        self.posts += run.posts;
        self.alone += run.alone;
        self.hooks += run.hooks;
        match run.verdict {
            Verdict::Passed => {}
            Verdict::Unknown => self.unknown += 1,
            Verdict::Failed(_) => self.failed.push((seed, run)),
        }
    }

    fn line(&self, took: Duration) -> String {
        let hours = self.simulated.as_secs_f64() / 3600.0;
        let a_minute = hours / took.as_secs_f64().max(0.001) * 60.0;
        format!(
            "{} seeds in {:.0} s: {} failed, {} unknown; {hours:.0} h simulated ({a_minute:.0} h a minute), {} faults, {} \
             elections, {} entries, {} events, {} posts ({} alone), {} hooks",
            self.seeds,
            took.as_secs_f64(),
            self.failed.len(),
            self.unknown,
            self.faults,
            self.elections,
            self.entries,
            self.events,
            self.posts,
            self.alone,
            self.hooks,
        )
    }
}
