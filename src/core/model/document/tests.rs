//! Joined views of one event, and lookups.

use super::*;

/// An announcement without VMs.
pub(crate) fn announced(id: &str, status: Status) -> Announcement {
    Announcement {
        id: EventId::new(id),
        status,
        kind: EventType::Reboot,
        source: Source::Platform,
        resource_type: String::new(),
        resources: Vec::new(),
        not_before: NotBefore::Unknown,
        description: String::new(),
        duration: None,
    }
}

#[test]
fn every_event_is_found_whatever_its_place_and_the_status_that_is_further_counts() {
    let listed = [
        ("c", Status::Scheduled),
        ("a", Status::Started),
        ("d", Status::Scheduled),
        ("A", Status::Scheduled),
        ("e", Status::Other("CANCELED".into())),
    ];
    let document = Document::new(listed.into_iter().map(|(id, status)| announced(id, status)).collect());
    let found = ["a", "b", "c", "D", "e"].map(|id| document.get(&EventId::new(id)).map(|event| &event.status));
    let scheduled = Some(&Status::Scheduled);
    assert_eq!(found, [Some(&Status::Started), None, scheduled, scheduled, None]);
}

#[test]
fn views_of_many_vms_are_joined_as_those_of_few() {
    let names = |prefix: &str, range: core::ops::Range<usize>| -> Vec<VmName> {
        range.map(|number| VmName::new(&alloc::format!("{prefix}{number}"))).collect()
    };
    let of = |resources| Announcement { resources, ..announced("e", Status::Scheduled) };
    for count in [3, 2 * VmSet::FEW] {
        let [one, other] = [of(names("vm", 0..count)), of(names("_VM", 1..count + 1))];
        assert_eq!(one.joined_with(&other).resources, names("vm", 0..count + 1));
        assert!(!one.names_no_other(&other) && !other.names_no_other(&one) && !one.is_decided_like(&other));
        let again = of(names("_Vm", 0..count).into_iter().rev().collect());
        assert!(one.is_decided_like(&again) && again.names_no_other(&one));
        assert_eq!(one.joined_with(&again).resources, one.resources);
    }
}

#[test]
fn views_of_one_event_are_joined_and_the_worse_counts() {
    let names = |names: &[&str]| names.iter().map(|name| VmName::new(name)).collect::<Vec<_>>();
    let one = Announcement {
        kind: EventType::Freeze,
        source: Source::User,
        resources: names(&["a", "b"]),
        not_before: NotBefore::At(Timestamp(9)),
        duration: Some(Duration::from_secs(5)),
        ..announced("e", Status::Scheduled)
    };
    let other = Announcement {
        kind: EventType::Reboot,
        source: Source::Platform,
        resources: names(&["B", "c"]),
        not_before: NotBefore::At(Timestamp(8)),
        description: "new".into(),
        duration: None,
        ..announced("e", Status::Scheduled)
    };
    let joined = Announcement {
        kind: EventType::Reboot,
        source: Source::Platform,
        resources: names(&["a", "b", "c"]),
        not_before: NotBefore::At(Timestamp(8)),
        description: "new".into(),
        ..one.clone()
    };
    assert_eq!(one.joined_with(&other), joined);
    assert!(other.joined_with(&one).is_decided_like(&joined));
    let unreadable = Announcement::unreadable(EventId::new("e"), "it is odd");
    assert_eq!([one.joined_with(&unreadable), unreadable.joined_with(&one)], [one.clone(), one.clone()]);
    let unknown = Announcement { not_before: NotBefore::Unknown, ..one.clone() };
    assert_eq!(unknown.joined_with(&one).not_before, one.not_before);
    let cases: [(EventType, EventType); 3] = [
        (EventType::Freeze, EventType::Other("New".into())),
        (EventType::Redeploy, EventType::Preempt),
        (EventType::Preempt, EventType::Terminate),
    ];
    for (milder, harsher) in cases {
        let of = |kind: &EventType| Announcement { kind: kind.clone(), ..one.clone() };
        assert_eq!(of(&harsher).joined_with(&of(&milder)).kind, harsher);
        assert_eq!(of(&milder).joined_with(&of(&harsher)).kind, harsher);
    }
}
