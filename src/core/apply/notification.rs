//! Records that a notification was delivered.

use crate::apply::access::Applied;
use crate::model::command::Rejection;
use crate::model::notification::{Delivery, DeliveryRecord, Notification};
use crate::model::state::State;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// Number of notifications in the state; `NAME_LIMIT` bounds the length of names.
pub(crate) const REMEMBERED: usize = 4_096;

/// Longer than any sender could repeat a notification, by whichever clock.
pub(crate) const REMEMBERED_FOR: Duration = Duration::from_hours(2);

pub(crate) const NAME_LIMIT: usize = 512;

/// In the ids of `Notification::blocked`.
const BLOCKED: &str = "/blocked/";

pub(crate) const RECEIVERS: usize = 16;

/// Records delivered notifications, and drops records of notifications beyond any repetition.
pub(crate) fn record_deliveries(state: &mut State, told: &[Delivery]) -> Applied {
    let now = state.now;
    let is_fit = |told: &&Delivery| told.notice.len() <= NAME_LIMIT && told.receiver.len() <= NAME_LIMIT;
    let is_news = |told: &&Delivery| !state.is_delivered(&told.notice, &told.receiver);
    let news: Vec<&Delivery> = told.iter().filter(is_fit).filter(is_news).collect();
    if news.is_empty() {
        return Err(Rejection::Repeated);
    }
    // What an open event waits for stays known as told, until the resolution is told.
    let open = state.open_events().map(|event| Notification::blocked(event, "", now).id);
    let open: BTreeSet<String> = open.collect();
    let is_of_open = |id: &str| {
        let head = id.find(BLOCKED).and_then(|at| id.get(..at + BLOCKED.len()));
        head.is_some_and(|head| open.contains(head))
    };
    state.deliveries.retain(|id, noted| now.since(noted.at) < REMEMBERED_FOR || is_of_open(id));
    for Delivery { notice, receiver } in news {
        if state.deliveries.len() >= REMEMBERED && !state.deliveries.contains_key(notice) {
            continue;
        }
        let noted =
            state.deliveries.entry(notice.clone()).or_insert(DeliveryRecord { at: now, receivers: BTreeSet::new() });
        if noted.receivers.len() < RECEIVERS {
            noted.receivers.insert(receiver.clone());
        }
    }
    Ok(())
}
