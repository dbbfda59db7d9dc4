//! The part of a document that a replica reports.

use crate::model::document::{Announcement, Document, Status};
use crate::model::state::State;
use alloc::vec::Vec;

/// The listed events that fit the limit, and how many events are left out. A reported event is never dropped because of
/// a new event. Events with VMs of this cluster come before other events, which may use three quarters of the limit. A
/// left-out event waits until there is space. A reported event that no longer fits in its current form counts as
/// unreadable: the reported form stays, and the event is not approved.
pub(crate) fn fitting(listed: Document, before: &Document, state: &State) -> (Document, usize) {
    let room = state.room_for_document();
    if listed.bytes() <= room / 4 * 3 {
        return (listed, 0);
    }
    let known = |event: &Announcement| before.get(&event.id);
    let is_ours = |event: &Announcement| event.concerns(state) || known(event).is_some_and(|it| it.concerns(state));
    let taken = |of_others: bool| -> usize {
        let counted = listed.events.iter().filter(|event| !of_others || !is_ours(event));
        counted.filter_map(|event| known(event).map(Announcement::bytes)).sum()
    };
    let mut left = room.saturating_sub(taken(false));
    let mut left_for_others = (room / 4 * 3).saturating_sub(taken(true));
    let mut kept: Vec<Option<Announcement>> = listed.events.iter().map(|_| None).collect();
    let mut left_out = 0;
    for ours in [true, false] {
        for (place, event) in kept.iter_mut().zip(&listed.events).filter(|(_, event)| is_ours(event) == ours) {
            let before = known(event);
            let more = event.bytes().saturating_sub(before.map_or(0, Announcement::bytes));
            let fits = more <= if ours { left } else { left.min(left_for_others) };
            if fits {
                left -= more;
                left_for_others -= if ours { 0 } else { more };
            } else {
                left_out += 1;
            }
            *place = if fits { Some(event.clone()) } else { before.map(|before| stuck(before, event)) };
        }
    }
    (
        Document {
            events: kept.into_iter().flatten().collect(),
            has_element_without_id: listed.has_element_without_id,
        },
        left_out,
    )
}

/// The known form of an event that is too large in its current form. A start counts regardless.
fn stuck(before: &Announcement, now: &Announcement) -> Announcement {
    let has_started = before.status == Status::Started || now.status == Status::Started;
    Announcement { status: if has_started { Status::Started } else { Status::Unreadable }, ..before.clone() }
}
