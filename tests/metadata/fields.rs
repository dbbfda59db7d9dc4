//! The fields of an event, row by row (`imds.md`, the document).

use std::time::Duration;

use serde_json::{Value, json};

use allclear::machine::document::{Announcement, Kind, NotBefore, Source, Status};
use allclear::machine::id::VmName;
use allclear::machine::time::Timestamp;
use allclear::metadata::{MAX_RESOURCES, NoInformation, read_document};

fn event() -> Value {
    json!({
        "EventId": "C7061BAC-AFDC-4513-B24B-AA5F13A16123",
        "EventStatus": "Scheduled",
        "EventType": "Freeze",
        "ResourceType": "VirtualMachine",
        "Resources": ["WestNO_0", "WestNO_1"],
        "NotBefore": "Mon, 11 Apr 2022 22:26:58 GMT",
        "Description": "Live Migration",
        "EventSource": "Platform",
        "DurationInSeconds": 5
    })
}

fn read(event: &Value) -> Result<Announcement, NoInformation> {
    let body = json!({ "DocumentIncarnation": 2, "Events": [event] }).to_string();
    read_document(200, body.as_bytes()).map(|document| document.events[0].clone())
}

/// With one field set, or taken out when the value is `None`.
fn with(field: &str, value: Option<Value>) -> Result<Announcement, NoInformation> {
    let mut event = event();
    match value {
        Some(value) => event[field] = value,
        None => drop(event.as_object_mut().unwrap().remove(field)),
    }
    read(&event)
}

#[test]
fn ids_are_kept_as_received_and_compared_without_case() {
    for id in
        ["C7061BAC-AFDC-4513-B24B-AA5F13A16123", "c7061bac-afdc-4513-b24b-aa5f13a16123", "not-a-guid", "a \"b\" é"]
    {
        assert_eq!(with("EventId", Some(id.into())).unwrap().id.as_str(), id);
    }
    let upper = with("EventId", Some("AB-1".into())).unwrap().id;
    assert_eq!(upper, with("EventId", Some("ab-1".into())).unwrap().id);
}

#[test]
fn an_event_without_a_readable_id_takes_its_document_with_it() {
    for id in [None, Some(json!(null)), Some(json!("")), Some(json!(" ")), Some(json!(7)), Some(json!("x".repeat(257)))]
    {
        let read = with("EventId", id.clone());
        assert!(matches!(read, Err(NoInformation::BadEvent { position: 0, .. })), "{id:?}: {read:?}");
    }
    for element in [json!(null), json!("event"), json!([]), json!({})] {
        assert!(matches!(read(&element), Err(NoInformation::BadEvent { position: 0, .. })), "{element}");
    }
}

#[test]
fn one_bad_event_is_named_by_its_place_and_the_good_ones_are_not_used() {
    let body = json!({ "DocumentIncarnation": 2, "Events": [event(), {}] }).to_string();
    assert!(matches!(read_document(200, body.as_bytes()), Err(NoInformation::BadEvent { position: 1, .. })));
}

#[test]
fn statuses_types_and_sources_are_an_open_set() {
    for (word, status) in
        [("Scheduled", Status::Scheduled), ("Started", Status::Started), ("Paused", Status::Other("Paused".into()))]
    {
        assert_eq!(with("EventStatus", Some(word.into())).unwrap().status, status);
    }
    let kinds =
        [Kind::Freeze, Kind::Reboot, Kind::Redeploy, Kind::Preempt, Kind::Terminate, Kind::Other("Hibernate".into())];
    for kind in kinds {
        assert_eq!(with("EventType", Some(kind.as_word().into())).unwrap().kind, kind);
    }
    for source in [Source::Platform, Source::User, Source::Other("Tenant".into())] {
        assert_eq!(with("EventSource", Some(source.as_word().into())).unwrap().source, source);
    }
    assert_eq!(with("ResourceType", Some("Disk".into())).unwrap().resource_type, "Disk");
}

#[test]
fn fields_that_are_missing_or_of_the_wrong_kind_are_unknown() {
    for odd in [None, Some(json!(null)), Some(json!(7)), Some(json!({})), Some(json!([1])), Some(json!(true))] {
        assert_eq!(with("EventStatus", odd.clone()).unwrap().status, Status::Other(String::new()));
        assert_eq!(with("EventType", odd.clone()).unwrap().kind, Kind::Other(String::new()));
        assert_eq!(with("EventSource", odd.clone()).unwrap().source, Source::Other(String::new()));
        assert_eq!(with("ResourceType", odd.clone()).unwrap().resource_type, "");
        assert_eq!(with("Description", odd.clone()).unwrap().description, "");
        assert_eq!(with("NotBefore", odd).unwrap().not_before, NotBefore::Unknown);
    }
}

#[test]
fn not_before_is_read_in_every_spelling_and_never_rejects_a_document() {
    let moment = NotBefore::At(Timestamp(1_649_716_018_000));
    for (text, read) in [
        ("Mon, 11 Apr 2022 22:26:58 GMT", moment),
        ("Sat, 11 Apr 2022 22:26:58 GMT", moment),
        (" Mon, 11 Apr 2022 22:26:58 UTC ", moment),
        ("2022-04-11T22:26:58Z", moment),
        ("Mon, 1 Apr 2024 00:00:00 GMT", NotBefore::At(Timestamp(1_711_929_600_000))),
        ("", NotBefore::Unknown),
        ("as soon as possible", NotBefore::Unknown),
        ("Mon, 99 Foo 2022 99:99:99 GMT", NotBefore::Unknown),
    ] {
        assert_eq!(with("NotBefore", Some(text.into())).unwrap().not_before, read, "{text:?}");
    }
}

#[test]
fn a_duration_is_known_from_zero_on() {
    for (value, duration) in [
        (json!(0), Some(0)),
        (json!(6), Some(6)),
        (json!("30"), Some(30)),
        (json!(-1), None),
        (json!("-1"), None),
        (json!(""), None),
        (json!(5.5), None),
        (json!(null), None),
        (json!(u64::MAX), None),
    ] {
        assert_eq!(
            with("DurationInSeconds", Some(value.clone())).unwrap().duration,
            duration.map(Duration::from_secs),
            "{value}"
        );
    }
    assert_eq!(with("DurationInSeconds", None).unwrap().duration, None);
}

#[test]
fn resources_are_kept_as_received() {
    let resources = with("Resources", Some(json!(["_web_13", "WEB_1", "vm1", "vm10", ""]))).unwrap().resources;
    assert_eq!(resources.iter().map(VmName::as_str).collect::<Vec<_>>(), ["_web_13", "WEB_1", "vm1", "vm10", ""]);
    assert_eq!(with("Resources", None).unwrap().resources, []);
}

#[test]
fn an_event_of_which_a_resource_would_be_lost_takes_its_document_with_it() {
    let many = vec!["vm"; MAX_RESOURCES + 1];
    for odd in [json!("vm_0"), json!({}), json!([1]), json!([null]), json!(["x".repeat(257)]), json!(many)] {
        assert!(matches!(with("Resources", Some(odd)), Err(NoInformation::BadEvent { .. })));
    }
    assert_eq!(with("Resources", Some(json!(vec!["vm"; MAX_RESOURCES]))).unwrap().resources.len(), MAX_RESOURCES);
}

#[test]
fn long_texts_are_cut_between_characters() {
    let long = "é".repeat(10_000);
    assert_eq!(with("Description", Some(long.as_str().into())).unwrap().description.len(), 1024);
    assert_eq!(with("EventType", Some(long.as_str().into())).unwrap().kind.as_word().len(), 256);
}

#[test]
fn a_description_cannot_steer_a_terminal() {
    let description = with("Description", Some("a\u{1b}[2Jb\nc".into())).unwrap().description;
    assert_eq!(description, "a [2Jb c");
}

#[test]
fn unknown_fields_are_ignored() {
    assert_eq!(with("ScheduledEventApiVersion", Some("2020-07-01".into())).unwrap(), read(&event()).unwrap());
}

#[test]
fn of_two_entries_for_one_event_the_further_one_counts() {
    let mut started = event();
    started["EventStatus"] = "Started".into();
    started["EventId"] = "c7061bac-afdc-4513-b24b-aa5f13a16123".into();
    let body = json!({ "DocumentIncarnation": 2, "Events": [event(), started] }).to_string();
    let document = read_document(200, body.as_bytes()).unwrap();
    assert_eq!(document.events.iter().map(|event| event.status.clone()).collect::<Vec<_>>(), [Status::Started]);
}
