//! Claim: the costs of the pure core and of the document parser grow as intended, and every growth by a change is
//! noticed. Costs are counted in allocations, which are equal on every machine, however busy the machine is.
//!
//! `table.txt` has the costs at 1, 10 and 100; `ALLCLEAR_BLESS=1 cargo test --test functions costs::` rewrites the
//! table. Review the diff before you accept the new figures.

mod lies;
mod world;

use std::fmt::Write as _;
use std::path::Path;

use allclear::core::model::time::Timestamp;
use allclear::core::observation::{Observation, Patience, Poll, PollTime};
use allclear::core::plan::plan;
use allclear::imds::read_document;
use allclear::wire::log::encode_state;
use allocation_counter::measure;

use self::world::{World, document, wire};

const SIZES: [usize; 3] = [1, 10, 100];
/// Difference between standard libraries, in percent.
const SLACK: u64 = 2;
/// Constant part of the limit: lists double their capacity as they grow.
const ONCE: u64 = 20;
const AT_ONCE: PollTime = PollTime::at_once(Timestamp(0));

/// One line of the table: the allowed growth, and the cost at each size.
struct Row {
    what: &'static str,
    grows: Growth,
    allocations: [u64; SIZES.len()],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// Constant at every size.
    Not,
    /// Ten times the size costs at most ten times as much, plus a constant.
    Linear,
    /// Each element reads all elements: ten times the size costs at most a hundred times as much.
    Square,
}

fn allocations(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

fn row(what: &'static str, grows: Growth, cost: impl Fn(usize) -> u64) -> Row {
    Row { what, grows, allocations: SIZES.map(cost) }
}

fn rows() -> Vec<Row> {
    vec![
        row("a document of so many events, parsed", Growth::Linear, |events| {
            let body = wire(events);
            allocations(|| assert_eq!(read_document(200, &body).unwrap().events.len(), events))
        }),
        row("a poll in other bytes without news, so many in the history", Growth::Not, |closed| {
            let world = World::with_history(closed);
            let body = wire(1);
            let mut observation = Observation::default();
            observation.record_poll(
                Poll { document: &document(0), time: AT_ONCE, patience: Patience::default() },
                &world.state,
                |_| true,
            );
            allocations(|| {
                observation.record_poll(
                    Poll {
                        document: &read_document(200, &body).unwrap(),
                        time: AT_ONCE,
                        patience: Patience::default(),
                    },
                    &world.state,
                    |_| true,
                );
                assert!(plan(&world.state, &world.input).is_empty());
            })
        }),
        row("a whole event by `plan`, so many events in the history", Growth::Not, |closed| {
            World::with_history(closed).live(closed).planned
        }),
        row("a whole event by `apply`, so many events in the history", Growth::Not, |closed| {
            World::with_history(closed).live(closed).applied
        }),
        row("a whole event by `apply`, so many hooks", Growth::Square, |hooks| {
            World::with_hooks(hooks).live(0).applied
        }),
        row("a report of one more event, so many known", Growth::Linear, |known| {
            World::with_open(known).report_one_more(known)
        }),
        row("one plan, so many open events that wait", Growth::Linear, |open| {
            let world = World::with_open(open);
            allocations(|| assert!(plan(&world.state, &world.input).is_empty()))
        }),
        row("one plan, so many workloads without an event", Growth::Not, |hooks| {
            let world = World::with_hooks(hooks);
            allocations(|| assert!(plan(&world.state, &world.input).is_empty()))
        }),
        row("the state shown anew, so many open events", Growth::Linear, |open| {
            let world = World::with_open(open);
            allocations(|| drop(world.state.clone()))
        }),
        row("the state shown anew, so many events in the history", Growth::Not, |closed| {
            let world = World::with_history(closed);
            allocations(|| drop(world.state.clone()))
        }),
        row("the bytes of a snapshot, so many events in the history", Growth::Linear, |closed| {
            encode_state(&World::with_history(closed).state).len() as u64
        }),
        row("the bytes of a snapshot, so many open events", Growth::Linear, |open| {
            encode_state(&World::with_open(open).state).len() as u64
        }),
    ]
}

fn table(rows: &[Row]) -> String {
    let mut text = format!("{:<58}{:>12}{:>12}{:>12}\n", "", 1, 10, 100);
    for Row { what, allocations: [one, ten, hundred], .. } in rows {
        writeln!(text, "{what:<58}{one:>12}{ten:>12}{hundred:>12}").unwrap();
    }
    text
}

/// The faults of a row, compared with the recorded row.
fn mistakes(row: &Row, recorded: Option<&[u64]>) -> Vec<String> {
    let Row { what, grows, allocations } = row;
    let mut wrong = Vec::new();
    for (now, before) in allocations.iter().zip(recorded.unwrap_or_default()) {
        if *now > before + before * SLACK / 100 {
            wrong.push(format!("{what}: {now} instead of {before}"));
        }
    }
    if recorded.is_none_or(|recorded| recorded.len() != SIZES.len()) {
        wrong.push(format!("{what}: nothing is recorded; ALLCLEAR_BLESS=1 records it"));
    }
    for pair in allocations.windows(2) {
        let most = match grows {
            Growth::Not => pair[0],
            Growth::Linear => pair[0] * 10 + ONCE,
            Growth::Square => pair[0] * 100 + ONCE,
        };
        if pair[1] > most + most * SLACK / 100 {
            wrong.push(format!("{what}: it grows from {} to {}", pair[0], pair[1]));
        }
    }
    wrong
}

#[test]
fn what_the_core_costs_grows_as_it_should_and_not_unseen() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/costs/table.txt");
    let rows = rows();
    if std::env::var_os("ALLCLEAR_BLESS").is_some() {
        std::fs::write(&path, table(&rows)).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap();
    let numbers = |what: &str| -> Option<Vec<u64>> {
        let line = recorded.lines().find_map(|line| line.strip_prefix(what))?;
        line.split_whitespace().map(|number| number.parse().ok()).collect()
    };
    let wrong: Vec<String> = rows.iter().flat_map(|row| mistakes(row, numbers(row.what).as_deref())).collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{}", table(&rows));
}

#[test]
fn what_costs_more_than_before_or_grows_faster_than_it_may_is_told() {
    let measured = |grows, allocations| Row { what: "it", grows, allocations };
    let count = |row: &Row, recorded: Option<&[u64]>| mistakes(row, recorded).len();
    let linear = measured(Growth::Linear, [100, 1_000, 9_000]);
    assert_eq!(count(&linear, Some(&[100, 1_000, 9_000])), 0);
    assert_eq!(count(&linear, Some(&[100, 1_000, 8_000])), 1, "it costs more than before");
    assert_eq!(count(&linear, None), 1, "nothing was recorded");
    let faster = measured(Growth::Linear, [100, 1_100, 50_000]);
    assert_eq!(count(&faster, Some(&faster.allocations)), 2, "ten times as much costs eleven times as much, and more");
    let constant = measured(Growth::Not, [100, 100, 103]);
    assert_eq!(count(&constant, Some(&constant.allocations)), 1);
}
