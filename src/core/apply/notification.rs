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
const REMEMBERED: usize = 4_096;

/// Longer than any sender could repeat a notification, by whichever clock.
const REMEMBERED_FOR: Duration = Duration::from_hours(2);

const NAME_LIMIT: usize = 512;

/// Longer trouble has no resolution.
const UNRESOLVED_FOR: Duration = Duration::from_hours(30 * 24);

const RECEIVERS: usize = 16;

/// Records delivered notifications, and drops records of notifications beyond any repetition.
pub(crate) fn record_deliveries(state: &mut State, told: &[Delivery]) -> Applied {
    let now = state.now;
    let is_fit = |told: &&Delivery| told.notice.len() <= NAME_LIMIT && told.receiver.len() <= NAME_LIMIT;
    let is_news = |told: &&Delivery| !state.is_delivered(&told.notice, &told.receiver);
    let news: Vec<&Delivery> = told.iter().filter(is_fit).filter(is_news).collect();
    if news.is_empty() {
        return Err(Rejection::Repeated);
    }
    // A record of trouble stays until the end of the trouble is told.
    let is_old = |noted: &DeliveryRecord| now.since(noted.at) >= REMEMBERED_FOR;
    let is_lasting = |id: &str, noted: &DeliveryRecord| {
        let is_recent = now.since(noted.at) < UNRESOLVED_FOR;
        is_recent && Notification::has_an_end(id) && !state.is_resolved(id)
    };
    let old = state.deliveries.iter().filter(|(id, noted)| is_old(noted) && !is_lasting(id, noted));
    let old: Vec<String> = old.map(|(id, _)| id.clone()).collect();
    for id in old {
        state.deliveries.remove(&id);
    }
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

#[cfg(test)]
pub(crate) mod tests;
