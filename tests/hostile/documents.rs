//! Answers of the metadata service: read as a bounded document, stored and shown unchanged, or refused with a reason of
//! one line. A document that was read never makes the core break a promise.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use allclear::core::apply::apply;
use allclear::core::model::command::{Command, Entry, RegisterWorkloads, ReportDocument};
use allclear::core::model::document::{Document, NotBefore};
use allclear::core::model::id::VmName;
use allclear::core::model::state::State;
use allclear::core::model::time::Timestamp;
use allclear::core::verify::invariants;
use allclear::imds::{MAX_BODY, MAX_EVENTS, MAX_RESOURCES, read_document, read_written};
use allclear::wire::log;
use serde_json::{Value, json};

use crate::hostile::dice::{Dice, rounds};
use crate::hostile::{memory, mutate};

/// Maximum length of a reason; a reason is shown in one line of a log.
const LONGEST_REASON: usize = 2_000;

fn corpus() -> Vec<Value> {
    let examples: Vec<Value> = serde_json::from_str(include_str!("../metadata/payloads.json")).unwrap();
    let mut payloads: Vec<Value> = examples.into_iter().map(|example| example["payload"].clone()).collect();
    payloads.extend(serde_json::from_str::<Vec<Value>>(include_str!("corpus/documents.json")).unwrap());
    for payload in &mut payloads {
        // An entry of the corpus that was only logged becomes a document here.
        if payload["Events"].is_array() && payload["DocumentIncarnation"].is_null() {
            payload["DocumentIncarnation"] = 7.into();
        }
    }
    payloads
}

/// A fault in the reading of an answer.
fn wrong(status: u16, body: &[u8]) -> Option<String> {
    let read = catch_unwind(|| (read_document(status, body), read_written(body)));
    let Ok((read, written)) = read else { return Some("panicked".into()) };
    for document in [read.as_ref().ok(), written.as_ref().ok()].into_iter().flatten() {
        if let Some(wrong) =
            catch_unwind(AssertUnwindSafe(|| held_wrongly(document))).unwrap_or(Some("panicked".into()))
        {
            return Some(wrong);
        }
    }
    let reasons = [read.err().map(|why| why.to_string()), written.err()];
    let unfit = |reason: &String| {
        reason.is_empty() || reason.len() > LONGEST_REASON || reason.contains(|c: char| c.is_control())
    };
    reasons.into_iter().flatten().find(unfit).map(|reason| format!("told {reason:.500?}"))
}

fn held_wrongly(document: &Document) -> Option<String> {
    if document.events.len() > MAX_EVENTS || document.events.iter().any(|event| event.resources.len() > MAX_RESOURCES) {
        return Some("read more than there may be".into());
    }
    let by = VmName::new("db-0");
    // A replica accepts only documents without gaps.
    let report = Command::ReportDocument(ReportDocument {
        after: 0,
        document: Document { has_element_without_id: false, ..document.clone() },
    });
    let mut state = State::default();
    let register = Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() });
    for command in [register, report] {
        let entry = Entry { at: Timestamp(1_000), by: by.clone(), command };
        let stored = log::encode_entry(&entry);
        if log::decode_entry(&stored).as_ref() != Ok(&entry) {
            return Some("was not read back from the log".into());
        }
        if stored.len() > 2 * MAX_BODY {
            return Some(format!("takes {} bytes in the log", stored.len()));
        }
        apply(&mut state, &entry);
    }
    let broken = invariants::violated(&state).map(|broken| broken.to_string());
    let differs = log::decode_state(&log::encode_state(&state)).as_ref() != Ok(&state);
    broken.or(differs.then(|| "the state was not read back".into()))
}

#[test]
fn whatever_the_service_answers_is_a_document_or_a_reason() {
    let (corpus, mut dice) = (corpus(), Dice::of(1));
    for round in 0..rounds(4_000) {
        let mut value = dice.one(&corpus).clone();
        mutate::json(&mut dice, &mut value);
        let mut body = serde_json::to_vec(&value).unwrap();
        if dice.once_in(3) {
            let other = serde_json::to_vec(dice.one(&corpus)).unwrap();
            body = mutate::bytes(&mut dice, &body, &other);
        }
        let status = if dice.once_in(8) { *dice.one(&[100, 204, 302, 400, 429, 500, 599]) } else { 200 };
        let wrong = wrong(status, &body);
        assert_eq!(wrong, None, "round {round}, {status} {:.2000}", String::from_utf8_lossy(&body));
    }
    memory::is_bounded();
}

fn dated(date: &str) -> Option<Timestamp> {
    let event = json!({"EventId": "e", "EventType": "Reboot", "NotBefore": date});
    let document = read_written(event.to_string().as_bytes()).unwrap();
    match document.events[0].not_before {
        NotBefore::At(at) => Some(at),
        NotBefore::Unknown => None,
    }
}

/// The reader, or a reader with a mistake.
type Dated = fn(&str) -> Option<Timestamp>;

/// True if the text is a date; otherwise false, or the fault in the reading.
fn dated_wrongly(dated: Dated, text: &str) -> Result<bool, String> {
    let read = |text: &str| catch_unwind(|| dated(text)).map_err(|_| format!("panicked at {text:?}"));
    let Some(at) = read(text)? else { return Ok(false) };
    let moment = jiff::Timestamp::from_millisecond(at.0).map_err(|why| format!("{text:?}: {why}"))?;
    let utc = moment.to_zoned_datetime(jiff::tz::TimeZone::UTC);
    let mut spelled = vec![moment.to_string()];
    if at.0 % 1_000 == 0 && (0..=9999).contains(&utc.year()) {
        spelled.push(jiff::fmt::rfc2822::to_string(&utc).unwrap());
    }
    for spelled in spelled {
        if read(&spelled)? != Some(at) {
            return Err(format!("{text:?} as {spelled}"));
        }
    }
    Ok(true)
}

/// The number of dates found, or the fault.
fn dates_searched(dated: Dated, rounds: u64) -> Result<usize, String> {
    let corpus: Vec<&str> = include_str!("corpus/dates.txt").lines().collect();
    let (mut dice, mut read) = (Dice::of(2), 0);
    for _ in 0..rounds {
        let (line, other) = (*dice.one(&corpus), *dice.one(&corpus));
        let mutated = mutate::bytes(&mut dice, line.as_bytes(), other.as_bytes());
        read += usize::from(dated_wrongly(dated, &String::from_utf8_lossy(&mutated))?);
    }
    Ok(read)
}

#[test]
fn a_date_is_a_moment_that_is_read_again_from_either_spelling_or_unknown() {
    let rounds = rounds(20_000);
    let read = dates_searched(dated, rounds).unwrap();
    assert!(u64::try_from(read).unwrap() > rounds / 67, "only {read} dates were read");
}

#[test]
fn readers_of_dates_with_a_mistake_are_found_out() {
    let mistaken: [(&str, Dated); 3] = [
        ("one that cuts a text in the middle of a letter", |text| {
            let half = text[..text.len() / 2].len();
            dated(text).filter(|_| half <= text.len())
        }),
        ("one that takes the spelling of mails for another zone", |text| {
            let late = Duration::from_hours(u64::from(text.contains(',')));
            dated(text).map(|at| at.plus(late))
        }),
        ("one that knows no moment before its own time", |text| {
            dated(text).filter(|at| at.0 >= 0 || text.contains(' '))
        }),
    ];
    for (what, dated) in mistaken {
        assert!(dates_searched(dated, 20_000).is_err(), "{what} was not found");
    }
}

#[test]
fn a_reader_that_takes_two_events_for_one_is_found_out() {
    // As if the id had been cut: the document would hold two indistinguishable events.
    let mut document = read_written(br#"{"EventId": "e", "EventType": "Reboot"}"#).unwrap();
    let again = document.events.clone();
    document.events.extend(again);
    assert!(held_wrongly(&document).is_some());
}
