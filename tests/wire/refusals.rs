//! Values that are not completely understood are refused, with the name of the place and a message for people.

use allclear::wire::log::{DecodeFault, Undecodable, decode_command, decode_entry, decode_state, decode_verdict};
use allclear::wire::pb::allclear::log::v1 as pb;
use prost::Message;

use crate::wire::golden::golden;

type Change = fn(&mut pb::State);
type Renumber = fn(&mut pb::State, i32);

/// Every enum of the package, with its place in the rich state.
const NUMBERED: [(&str, Renumber); 13] = [
    ("snapshot.state.replicas.workloads.hooks.phase", |state, number| hook(state).phase = number),
    ("snapshot.state.replicas.workloads.hooks.on_failure", |state, number| hook(state).on_failure = number),
    ("snapshot.state.replicas.workloads.hooks.runs_on", |state, number| hook(state).runs_on = number),
    ("snapshot.state.replicas.workloads.on_absent", |state, number| workload(state).on_absent = Some(number)),
    ("snapshot.state.replicas.conditions.role", |state, number| {
        let condition = pb::Condition { workload: "postgres".into(), role: number, connected: true, readiness: 1 };
        state.replicas[0].conditions.push(condition);
    }),
    ("snapshot.state.open.entered.stage", |state, number| event(state).entered[0].stage = number),
    ("snapshot.state.open.ending", |state, number| event(state).ending = Some(number)),
    ("snapshot.state.open.treatment.action", |state, number| treatment(state).action = number),
    ("snapshot.state.open.treatment.phases", |state, number| treatment(state).phases[3] = number),
    ("snapshot.state.open.attempts.intent", |state, number| attempt(state).intent = number),
    ("snapshot.state.open.attempts.hook.phase", |state, number| attempt(state).hook.as_mut().unwrap().phase = number),
    ("snapshot.state.open.claims.reason", |state, number| event(state).claims[0].reason = number),
    ("snapshot.state.open.waivers.hook.phase", |state, number| {
        event(state).waivers[0].hook.as_mut().unwrap().phase = number;
    }),
];

/// Every required message inside another message of the state.
const REQUIRED: [(&str, Change); 8] = [
    ("snapshot.state.open.announcement", |state| event(state).announcement = None),
    ("snapshot.state.open.attempts.member", |state| attempt(state).member = None),
    ("snapshot.state.open.attempts.hook", |state| attempt(state).hook = None),
    ("snapshot.state.open.attempts.settled.outcome", |state| attempt(state).settled.as_mut().unwrap().outcome = None),
    ("snapshot.state.open.waivers.member", |state| event(state).waivers[0].member = None),
    ("snapshot.state.open.waivers.hook", |state| event(state).waivers[0].hook = None),
    ("snapshot.state.open.waivers.why", |state| event(state).waivers[0].why = None),
    ("snapshot.state.open.claims.recorded.outcome", |state| {
        event(state).claims[0].recorded.as_mut().unwrap().outcome = None;
    }),
];

const TWICE: [(&str, Change); 3] = [
    ("snapshot.state.replicas", |state| state.replicas[1].name = "DB-0".into()),
    ("snapshot.state.open", |state| state.open[1].announcement.as_mut().unwrap().event_id = "a-1".into()),
    ("snapshot.state.open.seen_by", |state| event(state).seen_by.push("_db-1".into())),
];

#[test]
fn an_unspecified_enum_is_refused() {
    for (place, change) in NUMBERED {
        refuses(place, &DecodeFault::Unspecified, |state| change(state, 0));
    }
    let verdict = pb::ApplyResult { variant: Some(pb::apply_result::Variant::Rejected(0)) };
    let refused = decode_verdict(&verdict.encode_to_vec()).unwrap_err();
    assert_eq!(refused, Undecodable { place: "verdict.rejected".into(), fault: DecodeFault::Unspecified });
}

#[test]
fn an_enum_of_a_newer_version_is_refused() {
    for (place, change) in NUMBERED {
        refuses(place, &DecodeFault::UnknownNumber(99), |state| change(state, 99));
    }
}

#[test]
fn a_missing_message_is_refused() {
    for (place, change) in REQUIRED {
        refuses(place, &DecodeFault::Missing, change);
    }
}

#[test]
fn the_same_name_twice_is_refused() {
    for (place, change) in TWICE {
        refuses(place, &DecodeFault::Twice, change);
    }
}

#[test]
fn a_number_beyond_its_range_is_refused() {
    refuses("snapshot.state.open.claims.recorded.outcome.refused", &DecodeFault::OutOfRange(70_000), |state| {
        let refused = pb::post_outcome::Variant::Refused(70_000);
        event(state).claims[0].recorded.as_mut().unwrap().outcome = Some(pb::PostOutcome { variant: Some(refused) });
    });
}

#[test]
fn every_command_without_its_messages_is_refused() {
    use pb::command::{
        BeginAttempt, ChooseTreatment, FinishAttempt, RecordPost, ReportDocument, ReportProgress, Variant, WaiveHook,
    };
    let bare = [
        ("command.report_document.document", Variant::ReportDocument(ReportDocument::default())),
        ("command.choose_treatment.treatment", Variant::ChooseTreatment(ChooseTreatment::default())),
        ("command.begin_attempt.member", Variant::BeginAttempt(BeginAttempt::default())),
        ("command.report_progress.progress", Variant::ReportProgress(ReportProgress::default())),
        ("command.finish_attempt.outcome", Variant::FinishAttempt(FinishAttempt::default())),
        ("command.waive_hook.member", Variant::WaiveHook(WaiveHook::default())),
        ("command.record_post.outcome", Variant::RecordPost(RecordPost::default())),
    ];
    for (place, variant) in bare {
        let command = pb::Command { variant: Some(variant) };
        let refused = decode_command(&command.encode_to_vec()).unwrap_err();
        assert_eq!(refused, Undecodable { place: place.into(), fault: DecodeFault::Missing });
    }
}

#[test]
fn a_command_of_a_newer_version_stops_the_reader_with_advice() {
    let command = nested(99, b"");
    let refused = decode_command(&command).unwrap_err();
    assert_eq!(refused, Undecodable { place: "command".into(), fault: DecodeFault::UnknownVariant });

    let entry = [nested(2, b"db-0"), nested(3, &command)].concat();
    let refused = decode_entry(&entry).unwrap_err();
    let advice = "entry.command is of a kind not known here: it was written by a newer version of allclear; \
                  upgrade this replica";
    assert_eq!(refused.to_string(), advice);
}

#[test]
fn a_field_of_a_newer_version_is_never_passed_over() {
    let forget = nested(1, b"A-1");
    assert!(decode_command(&nested(13, &forget)).is_ok());
    let with_more = [forget, nested(15, b"more")].concat();
    let refused = decode_command(&nested(13, &with_more)).unwrap_err();
    assert_eq!(refused, Undecodable { place: "command".into(), fault: DecodeFault::UnknownFields });
}

#[test]
fn bytes_that_are_no_message_are_refused_as_damaged() {
    let refused = decode_entry(b"\xff\xff\xff").unwrap_err();
    assert_eq!(refused.place, "entry");
    assert!(matches!(refused.fault, DecodeFault::Damaged(_)), "{refused}");
    assert!(refused.to_string().starts_with("entry is damaged: "), "{refused}");
}

#[test]
fn every_enum_of_the_protos_begins_unspecified() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/proto/allclear/log/v1");
    let mut enums = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for (line, next) in text.lines().zip(text.lines().skip(1)) {
            if line.starts_with("enum ") {
                enums += 1;
                assert!(next.ends_with("_UNSPECIFIED = 0;"), "{line} {next}");
            }
        }
    }
    assert!(enums >= 9, "only {enums} found");
}

/// Changes the rich state and expects a refusal at this place.
fn refuses(place: &str, fault: &DecodeFault, change: impl Fn(&mut pb::State)) {
    let mut snapshot = pb::Snapshot::decode(golden()["state rich"].as_slice()).unwrap();
    assert!(decode_state(&snapshot.encode_to_vec()).is_ok());
    change(snapshot.state.as_mut().unwrap());
    let refused = decode_state(&snapshot.encode_to_vec()).unwrap_err();
    assert_eq!(refused, Undecodable { place: place.into(), fault: fault.clone() });
}

fn workload(state: &mut pb::State) -> &mut pb::Workload {
    &mut state.replicas[0].workloads[0]
}

fn hook(state: &mut pb::State) -> &mut pb::Hook {
    &mut workload(state).hooks[0]
}

fn event(state: &mut pb::State) -> &mut pb::Event {
    &mut state.open[0]
}

fn treatment(state: &mut pb::State) -> &mut pb::Treatment {
    event(state).treatment.as_mut().unwrap()
}

/// An attempt with an outcome.
fn attempt(state: &mut pb::State) -> &mut pb::Attempt {
    &mut event(state).attempts[1]
}

/// A length-delimited field as the encoding writes fields; the number may be unknown to all messages.
fn nested(number: u8, content: &[u8]) -> Vec<u8> {
    let key = u16::from(number) << 3 | 2;
    let length = u8::try_from(content.len()).unwrap();
    assert!(length < 0x80, "one byte is enough for the lengths here");
    let [low, high] = [key & 0x7F, key >> 7].map(|part| u8::try_from(part).unwrap());
    let key = if high == 0 { vec![low] } else { vec![low | 0x80, high] };
    [key.as_slice(), &[length], content].concat()
}
