//! Claim: under any faults of three replicas, their disks, clocks, links and metadata endpoints, while the platform
//! keeps announcing events, S1 to S8 hold for the records of the platform, the hooks and the replicas themselves, and
//! after the faults every event is closed and everything is restored.
//!
//! A seed decides the rounds. `ALLCLEAR_NEMESIS=1h ALLCLEAR_SEED=7 cargo test --test processes nemesis -- --nocapture`
//! goes on for an hour, round after round; round n of seed s is the first round of seed s + n.

mod agenda;
mod gather;
mod halts;
mod hooks_judge;
mod judge;
mod judge_tests;
mod record;
mod round;
mod strike;
mod tricks;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use self::judge::{Finding, judge};
use self::record::{Record, Strike};
use self::round::Round;

const SPAN: &str = "ALLCLEAR_NEMESIS";
const SEED: &str = "ALLCLEAR_SEED";
const IN_EVERY_RUN: Duration = Duration::from_mins(5);
/// The duration of the faults in a round, and of a whole round as a rule.
const STORM: Duration = Duration::from_secs(80);
const ROUND: Duration = Duration::from_secs(170);
/// A fault within this time of an event is shown beside the findings.
const AROUND_MS: i64 = 10_000;

/// The result of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Pass,
    Fail,
    /// No fault took effect, so nothing is shown.
    Unknown,
}

fn verdict(findings: &[Finding], strikes: &[Strike]) -> Verdict {
    match findings {
        [_, ..] => Verdict::Fail,
        [] if strikes.iter().any(|strike| strike.took_effect) => Verdict::Pass,
        [] => Verdict::Unknown,
    }
}

/// Plays rounds in turn until the time is over.
pub(crate) async fn play() {
    let span = std::env::var(SPAN).map_or(IN_EVERY_RUN, |text| {
        humantime::parse_duration(&text).unwrap_or_else(|error| panic!("{SPAN}={text:?}: {error}; write 15m or 1h"))
    });
    let seed = std::env::var(SEED).map_or(2026, |text| text.parse().unwrap());
    let (began, mut tally) = (Instant::now(), Tally::default());
    for seed in seed.. {
        println!("round of seed {seed}, after {:?}", began.elapsed());
        let mut round = Round::set().await;
        round.storm(seed, STORM).await;
        round.come_right().await;
        if judge(&round.record).is_empty() {
            round.desert(seed).await;
            round.come_right().await;
        }
        if judge(&round.record).is_empty() {
            round.calm(seed).await;
        }
        let record = &round.record;
        tally.add(record);
        let findings = judge(record);
        let verdict = verdict(&findings, &record.strikes);
        println!("{}{verdict:?}", tally.table());
        assert!(verdict == Verdict::Pass, "{}", report(&round, seed, &findings));
        if began.elapsed() + ROUND / 2 > span {
            break;
        }
    }
}

/// The findings, each with its surrounding incidents; everything else is kept in a folder.
fn report(round: &Round, seed: u64, findings: &[Finding]) -> String {
    let record = &round.record;
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("nemesis-{seed}"));
    fs::create_dir_all(&folder).unwrap();
    for place in 0..3 {
        fs::write(folder.join(format!("db-{place}.log")), round.cluster.log(place)).unwrap();
    }
    fs::write(folder.join("hooks.log"), round.cluster.hooks.written()).unwrap();
    fs::write(folder.join("record"), format!("{record:#?}")).unwrap();
    let mut text = format!("{SEED}={seed}; everything that was recorded is in {}\n", folder.display());
    if findings.is_empty() {
        text.push_str("unknown: no fault took effect, so nothing is shown\n");
    }
    for Finding { property, event, why } in findings {
        writeln!(text, "BROKEN {property}, event {event}: {why}").unwrap();
    }
    if let Some(Finding { event, .. }) = findings.first() {
        facts(record, event, &mut text);
    }
    text
}

fn facts(record: &Record, id: &str, text: &mut String) {
    let Some(event) = record.event(id) else { return };
    writeln!(text, "{event:?}").unwrap();
    record.posts_of(id).for_each(|post| writeln!(text, "{post:?}").unwrap());
    record.runs.iter().filter(|run| run.event == id).for_each(|run| writeln!(text, "{run:?}").unwrap());
    for told in record.told(id) {
        writeln!(text, "{:#?}\n{:#?}", told.approvals, told.timeline).unwrap();
    }
    let until = event.ended.unwrap_or(i64::MAX - AROUND_MS) + AROUND_MS;
    let is_near = |strike: &&Strike| strike.from <= until && strike.to + AROUND_MS >= event.at;
    record.strikes.iter().filter(is_near).for_each(|strike| writeln!(text, "{strike:?}").unwrap());
}

/// How often everything happened in all rounds.
#[derive(Default)]
struct Tally {
    rounds: usize,
    events: usize,
    approved: usize,
    halts: usize,
    posts: usize,
    hooks: usize,
    faults: BTreeMap<&'static str, (usize, usize)>,
}

impl Tally {
    fn add(&mut self, record: &Record) {
        self.rounds += 1;
        self.events += record.events.len();
        let is_ours = |(_, by): &(i64, String)| record.vms.contains(by);
        self.approved += record.events.iter().filter(|event| event.accepted.as_ref().is_some_and(is_ours)).count();
        self.halts += record.halts.iter().filter(|halt| halt.from < halt.to).count();
        self.posts += record.posts.len();
        self.hooks += record.runs.len();
        for strike in &record.strikes {
            let (tried, effective) = self.faults.entry(strike.kind).or_default();
            *tried += 1;
            *effective += usize::from(strike.took_effect);
        }
    }

    fn table(&self) -> String {
        let Self { rounds, events, approved, halts, posts, hooks, faults } = self;
        let mut text = format!(
            "{rounds} rounds, {events} events, {approved} approved by us with {posts} posts, \
             {halts} holds and pauses that everybody knew, {hooks} hooks run\n| fault | tried | took effect |\n|---|---|---|\n"
        );
        for (kind, (tried, effective)) in faults {
            writeln!(text, "| {kind} | {tried} | {effective} |").unwrap();
        }
        text
    }
}

/// The judge finds real violations: an approval without a replica's decision, and a hook that no replica ran.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_done_behind_the_replicas_backs_is_found() {
    let mut round = Round::set().await;
    let order = json!({ "type": "Reboot", "vm": 0, "notice": 20_000, "start_delay": 1_000, "impact": 2_000 });
    let id = round.cluster.cloud.announce(order).await;
    round.cluster.cloud.approve_as("db-1", &id).await;
    let stranger = [("ALLCLEAR_VM", "db-0"), ("ALLCLEAR_WORKLOAD", "queue"), ("ALLCLEAR_PHASE", "restore")];
    round.cluster.hooks.run_script(&[&stranger[..], &[("ALLCLEAR_EVENT_ID", &id)]].concat());
    round.come_right().await;
    let findings = judge(&round.record);
    for expected in ["S3", "S6", "S8"] {
        assert!(findings.iter().any(|found| found.property == expected), "{expected} is not among {findings:?}");
    }
}

#[test]
fn a_run_without_effective_faults_shows_nothing() {
    let strike = |took_effect| {
        let what = String::new();
        Strike { kind: "clock jumps", what, from: 0, to: 1, took_effect }
    };
    let found = [judge::finding("S1", "E", "it")];
    assert_eq!(verdict(&[], &[]), Verdict::Unknown);
    assert_eq!(verdict(&[], &[strike(false)]), Verdict::Unknown);
    assert_eq!(verdict(&[], &[strike(false), strike(true)]), Verdict::Pass);
    assert_eq!(verdict(&found, &[strike(true)]), Verdict::Fail);
}
