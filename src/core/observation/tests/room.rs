//! The report limit, and the events left out.

use super::*;
use crate::model::bytes::DOCUMENT_BYTES;

/// This many events of a VM outside this cluster, each with a long description.
fn of_others(count: usize, from: usize) -> Vec<Announcement> {
    let other = |number: usize| Announcement {
        resources: alloc::vec![VmName::new("other")],
        description: "x".repeat(1_024),
        ..announced(&alloc::format!("o{number}"), Status::Scheduled)
    };
    (from..from + count).map(other).collect()
}

/// An event of VM a, with this many other VMs.
fn ours(id: &str, others: usize) -> Announcement {
    let others = (0..others).map(|number| VmName::new(&alloc::format!("other-{number}")));
    Announcement {
        resources: [VmName::new("a")].into_iter().chain(others).collect(),
        ..announced(id, Status::Scheduled)
    }
}

fn of_us(us: &str) -> State {
    let mut state = State::default();
    state.replicas.entry(VmName::new(us)).or_default();
    state
}

#[test]
fn an_event_of_ours_has_room_whatever_is_listed_beside_it() {
    let (mut observation, state) = (Observation::default(), of_us("a"));
    let others = of_others(1_000, 0);
    poll(&mut observation, &state, 0, &Document::new(others.clone()));
    let (kept, left_out) = (reported(&observation).events.len(), observation.left_out());
    assert!(kept > 100 && kept + left_out == 1_000, "{kept} and {left_out}");
    assert!(reported(&observation).bytes() <= DOCUMENT_BYTES / 4 * 3);
    let with_ours = Document::new(others.into_iter().chain([ours("e1", 0)]).collect());
    poll(&mut observation, &state, 1, &with_ours);
    assert!(reported(&observation).get(&EventId::new("e1")).is_some());
    assert_eq!(reported(&observation).events.len(), kept + 1, "nothing that was told goes because of it");
    // Other events again: the earlier events are kept as long as any missing event is, and then there is space for the
    // new events.
    let again = Document::new(of_others(1_000, 1_000).into_iter().chain([ours("e1", 0)]).collect());
    poll(&mut observation, &state, 2, &again);
    assert!(reported(&observation).get(&EventId::new("o1000")).is_none());
    poll(&mut observation, &state, 3, &again);
    poll(&mut observation, &state, 4, &again);
    assert!(reported(&observation).get(&EventId::new("o1000")).is_some());
    assert!(reported(&observation).get(&EventId::new("e1")).is_some());
    poll(&mut observation, &state, 5, &Document::new([ours("e1", 0)].into()));
    poll(&mut observation, &state, 6, &Document::new([ours("e1", 0)].into()));
    poll(&mut observation, &state, 7, &Document::new([ours("e1", 0)].into()));
    assert_eq!((reported(&observation).events.len(), observation.left_out()), (1, 0));
}

#[test]
fn an_event_that_does_not_fit_as_it_is_now_stays_what_it_was_and_cannot_be_read() {
    let (mut observation, state) = (Observation::default(), of_us("a"));
    let all = |others: usize| (0..8).map(|number| ours(&alloc::format!("e{number}"), others)).collect::<Vec<_>>();
    poll(&mut observation, &state, 0, &Document::new(all(1)));
    poll(&mut observation, &state, 1, &Document::new(all(900)));
    let stuck: Vec<_> = reported(&observation).events.into_iter().filter(|event| event.resources.len() < 900).collect();
    assert!(!stuck.is_empty() && stuck.len() == observation.left_out());
    assert!(stuck.iter().all(|event| event.status == Status::Unreadable && event.resources.len() == 2));
    assert!(reported(&observation).bytes() <= DOCUMENT_BYTES);
    let started = all(900).into_iter().map(|event| Announcement { status: Status::Started, ..event }).collect();
    poll(&mut observation, &state, 2, &Document::new(started));
    assert!(
        reported(&observation).events.iter().all(|event| event.status == Status::Started),
        "that counts all the same"
    );
}

#[test]
fn what_concerns_us_is_what_is_new_of_events_that_name_a_vm_of_ours() {
    let (mut state, me) = (of_us("a"), VmName::new("a"));
    let listed = |events: &[Announcement]| Document::new(events.into());
    assert!(concerns_us(&listed(&[]), &state, &me), "it has said nothing yet");
    let known = listed(&[ours("e1", 0), of_others(1, 0).remove(0)]);
    Arc::make_mut(state.replicas.get_mut(&me).unwrap()).document = Some(known.clone());
    let cases = [
        (known, false),
        (listed(&[ours("e1", 0)]), false),
        (listed(&[ours("e1", 0), of_others(1, 7).remove(0)]), false),
        (listed(&[ours("e1", 1), of_others(1, 0).remove(0)]), true),
        (listed(&[of_others(1, 0).remove(0)]), true),
        (listed(&[ours("e1", 0), ours("e2", 0)]), true),
    ];
    for (document, expected) in cases {
        assert_eq!(concerns_us(&document, &state, &me), expected, "{document:?}");
    }
}
