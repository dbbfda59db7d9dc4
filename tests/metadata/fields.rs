//! The fields of an event, row by row (`SPEC.md` 17.3).

use std::time::Duration;

use serde_json::{Value, json};

use allclear::core::model::document::{Announcement, Document, EventType, NotBefore, Source, Status};
use allclear::core::model::id::VmName;
use allclear::core::model::time::Timestamp;
use allclear::imds::{MAX_RESOURCES, read_document};

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

fn document(events: &[Value]) -> Document {
    let body = json!({ "DocumentIncarnation": 2, "Events": events }).to_string();
    read_document(200, body.as_bytes()).unwrap()
}

fn read(event: &Value) -> Announcement {
    document(std::slice::from_ref(event)).events[0].clone()
}

/// An event with one field set, or removed if the value is `None`.
fn with(field: &str, value: Option<Value>) -> Announcement {
    let mut event = event();
    match value {
        Some(value) => event[field] = value,
        None => drop(event.as_object_mut().unwrap().remove(field)),
    }
    read(&event)
}

#[test]
fn ids_are_kept_in_lower_case_and_as_received() {
    for id in
        ["C7061BAC-AFDC-4513-B24B-AA5F13A16123", "c7061bac-afdc-4513-b24b-aa5f13a16123", "not-a-guid", "a \"b\" é"]
    {
        let read = with("EventId", Some(id.into())).id;
        assert_eq!((read.as_str(), read.as_received()), (&*id.to_ascii_lowercase(), id));
    }
}

#[test]
fn an_element_without_a_readable_id_leaves_a_gap_and_the_others_stay() {
    for id in [None, Some(json!(null)), Some(json!("")), Some(json!(" ")), Some(json!(7)), Some(json!("x".repeat(257)))]
    {
        let mut odd = event();
        match id {
            Some(id) => odd["EventId"] = id,
            None => drop(odd.as_object_mut().unwrap().remove("EventId")),
        }
        let expected = Document { has_element_without_id: true, ..document(&[event()]) };
        assert_eq!(document(&[odd.clone(), event()]), expected, "{odd}");
    }
    for element in [json!(null), json!("event"), json!([]), json!({})] {
        assert!(document(std::slice::from_ref(&element)).has_element_without_id, "{element}");
    }
    assert!(!document(&[event()]).has_element_without_id);
}

#[test]
fn an_element_of_which_only_the_id_is_readable_is_an_event_that_cannot_be_read() {
    let many = vec!["vm"; MAX_RESOURCES + 1];
    for odd in [json!("vm_0"), json!({}), json!([1]), json!([null]), json!(["x".repeat(257)]), json!(many)] {
        let mut unreadable = event();
        unreadable["Resources"] = odd;
        let read = document(std::slice::from_ref(&unreadable));
        let [Announcement { id, status: Status::Unreadable, resources, .. }] = &read.events[..] else {
            panic!("{read:?}");
        };
        assert_eq!((id, resources.len(), read.has_element_without_id), (&document(&[event()]).events[0].id, 0, false));
    }
    let limit: Vec<_> = (0..MAX_RESOURCES).map(|number| format!("vm{number}")).collect();
    assert_eq!(with("Resources", Some(json!(limit))).resources.len(), MAX_RESOURCES);
}

#[test]
fn an_event_that_is_over_is_not_listed() {
    for word in ["Completed", "Canceled", "cancelled"] {
        let mut over = event();
        over["EventStatus"] = word.into();
        assert_eq!(document(&[over]), Document::default(), "{word}");
    }
}

#[test]
fn statuses_types_and_sources_are_an_open_set() {
    for (word, status) in
        [("Scheduled", Status::Scheduled), ("Started", Status::Started), ("Paused", Status::Other("Paused".into()))]
    {
        assert_eq!(with("EventStatus", Some(word.into())).status, status);
    }
    let kinds = [
        EventType::Freeze,
        EventType::Reboot,
        EventType::Redeploy,
        EventType::Preempt,
        EventType::Terminate,
        EventType::Other("Hibernate".into()),
    ];
    for kind in kinds {
        assert_eq!(with("EventType", Some(kind.as_str().into())).kind, kind);
    }
    for source in [Source::Platform, Source::User, Source::Other("Tenant".into())] {
        assert_eq!(with("EventSource", Some(source.as_str().into())).source, source);
    }
    assert_eq!(with("ResourceType", Some("Disk".into())).resource_type, "Disk");
}

#[test]
fn fields_that_are_missing_or_of_the_wrong_kind_are_unknown() {
    for odd in [None, Some(json!(null)), Some(json!(7)), Some(json!({})), Some(json!([1])), Some(json!(true))] {
        assert_eq!(with("EventStatus", odd.clone()).status, Status::Other(String::new()));
        assert_eq!(with("EventType", odd.clone()).kind, EventType::Other(String::new()));
        assert_eq!(with("EventSource", odd.clone()).source, Source::Other(String::new()));
        assert_eq!(with("ResourceType", odd.clone()).resource_type, "");
        assert_eq!(with("Description", odd.clone()).description, "");
        assert_eq!(with("NotBefore", odd).not_before, NotBefore::Unknown);
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
        assert_eq!(with("NotBefore", Some(text.into())).not_before, read, "{text:?}");
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
            with("DurationInSeconds", Some(value.clone())).duration,
            duration.map(Duration::from_secs),
            "{value}"
        );
    }
    assert_eq!(with("DurationInSeconds", None).duration, None);
}

#[test]
fn resources_are_kept_as_received() {
    let resources = with("Resources", Some(json!(["_web_13", "WEB_1", "vm1", "vm10", ""]))).resources;
    assert_eq!(resources.iter().map(VmName::as_str).collect::<Vec<_>>(), ["_web_13", "WEB_1", "vm1", "vm10", ""]);
    assert_eq!(with("Resources", None).resources, []);
    let twice = with("Resources", Some(json!(["vm", "VM", "_vm"]))).resources;
    assert_eq!(twice.iter().map(VmName::as_str).collect::<Vec<_>>(), ["vm"]);
}

#[test]
fn long_texts_are_cut_between_characters() {
    let long = "é".repeat(10_000);
    assert_eq!(with("Description", Some(long.as_str().into())).description.len(), 1024);
    assert_eq!(with("EventType", Some(long.as_str().into())).kind.as_str().len(), 256);
}

#[test]
fn a_description_cannot_steer_a_terminal() {
    let description = with("Description", Some("a\u{1b}[2Jb\nc".into())).description;
    assert_eq!(description, "a [2Jb c");
}

#[test]
fn unknown_fields_are_ignored() {
    assert_eq!(with("ScheduledEventApiVersion", Some("2020-07-01".into())), read(&event()));
}

#[test]
fn two_entries_of_one_event_are_one() {
    let mut started = event();
    started["EventStatus"] = "Started".into();
    started["EventId"] = "c7061bac-afdc-4513-b24b-aa5f13a16123".into();
    started["Resources"] = json!(["WestNO_2"]);
    let [Announcement { status, resources, .. }] = &document(&[event(), started]).events[..] else {
        panic!("not one event");
    };
    let resources: Vec<_> = resources.iter().map(VmName::as_str).collect();
    assert_eq!((status, &resources[..]), (&Status::Started, &["WestNO_0", "WestNO_1", "WestNO_2"][..]));
}
