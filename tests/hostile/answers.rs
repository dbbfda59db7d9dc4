//! Output of hooks and answers of servers: a role or a reason for its absence, an outcome with a reason of one bounded
//! line, progress of one bounded line and an end that is a timestamp. Real servers, real processes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use allclear::core::model::document::{EventType, Source};
use allclear::core::model::id::{EventId, VmName, WorkloadName};
use allclear::core::model::time::Timestamp;
use allclear::core::model::workload::{Intent, Phase, Role};
use allclear::hooks::{
    Deadline, Fence, HookCommand, HookEnvironment, HookOutcome, HookReport, HookTask, HookUpdate, HttpHook, RoleSource,
    Runner,
};
use allclear::http_client::Options;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use crate::hostile::dice::{Dice, rounds};
use crate::hostile::{memory, mutate};

const LIMIT: Duration = Duration::from_mins(2);
/// Maximum length of a hook's output in the log: 300 characters, and a mark for omitted text.
const LONGEST: usize = 301;

fn lines(corpus: &'static str) -> Vec<&'static str> {
    corpus.lines().collect()
}

fn said(dice: &mut Dice, corpus: &[&str]) -> Vec<u8> {
    let (line, other) = (*dice.one(corpus), *dice.one(corpus));
    if dice.once_in(4) {
        mutate::text(dice).into_bytes()
    } else {
        mutate::bytes(dice, line.as_bytes(), other.as_bytes())
    }
}

/// An answer, mostly HTTP.
fn answer(dice: &mut Dice, corpus: &[&str]) -> Vec<u8> {
    let body = said(dice, corpus);
    let status =
        *dice.one(&["200 OK", "200 OK", "200", "202 Accepted", "204 No Content", "307 X", "409 X", "503 X", "999 X"]);
    let length = if dice.once_in(12) { dice.number().to_string() } else { body.len().to_string() };
    let more = match dice.below(6) {
        0 => "Location: /job\r\n",
        1 => "Location: http://127.0.0.1:1/\r\nRetry-After: 0\r\n",
        2 => "Retry-After: 18446744073709551615\r\n",
        3 => "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        _ => "",
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{more}Connection: close\r\n\r\n");
    let whole = [head.as_bytes(), &body].concat();
    if dice.once_in(10) { mutate::bytes(dice, &whole, &body) } else { whole }
}

/// Answers every request, differently each time.
async fn server(number: u64, corpus: Vec<&'static str>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let dice = Arc::new(Mutex::new(Dice::of(number)));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = answer(&mut dice.lock().unwrap(), &corpus);
            tokio::spawn(reply(stream, answer));
        }
    });
    address
}

async fn reply(mut stream: TcpStream, answer: Vec<u8>) {
    let mut request = [0; 16 * 1024];
    let _ = stream.read(&mut request).await;
    let _ = stream.write_all(&answer).await;
    let _ = stream.shutdown().await;
}

#[tokio::test]
async fn a_role_is_one_of_two_or_a_reason_why_nobody_can_tell() {
    let corpus = lines(include_str!("corpus/answers.txt"));
    let address = server(5, corpus[..3].into()).await;
    let source = RoleSource::Http { url: format!("http://{address}/role"), options: Options::default() };
    let (rounds, mut known) = (rounds(500), 0);
    for round in 0..rounds {
        match source.ask(&BTreeMap::new(), &HookEnvironment::default(), Duration::from_secs(2)).await {
            Ok(role) => {
                assert_ne!(role, Role::Unknown);
                known += 1;
            }
            Err(reason) => assert!(!reason.is_empty() && reason.len() < 1_000, "round {round}: {reason:.2000}"),
        }
    }
    assert!(known > rounds / 100, "only {known} roles were told");
    memory::is_bounded();
}

fn task(attempt: String, deadline: Duration) -> HookTask {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    HookTask {
        attempt,
        step: "e@1/db-0/pg/failover/0".into(),
        fence: Fence { term: 1, sequence: 1 },
        event_id: EventId::new("e"),
        event_type: EventType::Reboot,
        event_source: Source::User,
        resources: vec![VmName::new("db-0")],
        phase: Phase::Failover,
        place: 0,
        workload: WorkloadName("pg".into()),
        group: None,
        vm: VmName::new("db-0"),
        intent: Intent::Run,
        deadline: Deadline::within(deadline, Timestamp::default().plus(now)),
        avoid: Vec::new(),
        prefer: Vec::new(),
        traceparent: None,
        drill: None,
    }
}

fn is_fit(text: &str) -> bool {
    text.chars().count() <= LONGEST && !text.contains(char::is_control)
}

/// The displayed progress of a running hook fits into a line.
fn is_told_well(news: &HookUpdate) -> bool {
    !matches!(news, HookUpdate::Progress { text: Some(text), .. } if !is_fit(text))
}

/// Checks every report until `count` hooks have ended.
async fn ends(reports: &mut Receiver<HookReport>, count: usize) -> BTreeMap<String, HookOutcome> {
    let mut ends = BTreeMap::new();
    while ends.len() < count {
        let report = timeout(LIMIT, reports.recv()).await.expect("no end").unwrap();
        assert!(is_told_well(&report.news), "{:?}", report.news);
        if let HookUpdate::Ended(ended) = report.news {
            ends.insert(report.attempt, ended);
        }
    }
    ends
}

fn open(folder: &Path) -> (Runner, Receiver<HookReport>) {
    Runner::open(folder, env!("CARGO_BIN_EXE_allclear").into(), HookEnvironment::default()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_over_http_ends_with_an_outcome_and_a_reason_of_one_line() {
    let address = server(6, lines(include_str!("corpus/answers.txt"))).await;
    let folder = tempfile::tempdir().unwrap();
    let (runner, mut reports) = open(folder.path());
    let command =
        HookCommand { argv: HttpHook::at(&format!("http://{address}/hook")).command(), ..HookCommand::default() };
    let mut outcomes = BTreeMap::new();
    for batch in 0..rounds(6) {
        for number in 0..12 {
            runner.run(&task(format!("{batch}.{number}"), Duration::from_secs(4)), &command);
        }
        for (attempt, ended) in ends(&mut reports, 12).await {
            if let HookOutcome::Failed(reason) | HookOutcome::Blocked(reason) | HookOutcome::Unknown(reason) = &ended {
                assert!(is_fit(reason) && !reason.contains("panicked"), "{attempt}: {ended:?}");
            }
            *outcomes.entry(ended.to_string().split(':').next().unwrap().to_owned()).or_insert(0) += 1;
            runner.forget(&attempt);
        }
    }
    println!("{outcomes:?}");
    assert!(outcomes.len() >= 3, "{outcomes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_hook_prints_its_progress_is_one_line_and_its_end_is_its_exit_status() {
    let (folder, spool) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (corpus, mut dice) = (lines(include_str!("corpus/progress.txt")), Dice::of(7));
    let (runner, mut reports) = open(spool.path());
    for number in 0..rounds(4) {
        let mut printed = Vec::new();
        for _ in 0..2_000 {
            printed.extend(said(&mut dice, &corpus));
            printed.push(b'\n');
        }
        let file = folder.path().join(number.to_string());
        std::fs::write(&file, printed).unwrap();
        let script = format!("cat {0}; cat {0} >&2; exit 1", file.display());
        let argv = ["/bin/sh".to_owned(), "-c".to_owned(), script].into();
        runner.run(&task(number.to_string(), LIMIT), &HookCommand { argv, ..HookCommand::default() });
    }
    let count = usize::try_from(rounds(4)).unwrap();
    for (attempt, ended) in ends(&mut reports, count).await {
        let HookOutcome::Failed(reason) = &ended else { panic!("{attempt}: {ended:?}") };
        assert!(is_fit(reason), "{attempt}: {ended:?}");
    }
}

type PassedOn = fn(&str) -> String;

#[test]
fn progress_that_is_passed_on_as_it_was_printed_is_found_out() {
    let (corpus, mut dice) = (lines(include_str!("corpus/progress.txt")), Dice::of(7));
    let without_what_steers: PassedOn = |printed| printed.replace(char::is_control, " ");
    let cut: PassedOn = |printed| printed.chars().take(LONGEST).collect();
    let mut mistaken = [
        ("as it is", str::to_owned as PassedOn, false),
        ("without what steers, however long", without_what_steers, false),
        ("cut, with what steers", cut, false),
    ];
    for _ in 0..2_000 {
        let printed = String::from_utf8_lossy(&said(&mut dice, &corpus)).into_owned();
        for (_, passed_on, is_found) in &mut mistaken {
            let news = HookUpdate::Progress { text: Some(passed_on(&printed)), expected_end: None };
            *is_found |= !is_told_well(&news);
        }
    }
    for (what, _, is_found) in mistaken {
        assert!(is_found, "progress that is told {what} looks well");
    }
}
