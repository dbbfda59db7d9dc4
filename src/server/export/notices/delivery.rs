//! Delivers notifications to one receiver, the oldest first. Each notification is tried until the receiver accepts, or
//! rejects permanently, or the hour of the notification is over.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use bytes::Bytes;

use super::pending::PendingNotifications;
use super::receiver::Receiver;
use super::{message, signature};
use crate::export::post::post;
use crate::export::retry::RetrySchedule;
use crate::http_client::Reply;
use crate::http_client::header::{CONTENT_TYPE, HeaderValue};
use crate::replica::clock;
use crate::replica::metrics::DeliveryLabel;
use allclear_core::model::notification::{Notification, TOLD_WITHIN};
use allclear_core::model::time::Timestamp;
use allclear_core::notification::BlockedSince;

/// The polling interval for blocked events and stalled channels.
const TICK: Duration = Duration::from_secs(1);
/// The minimal pause between two checks, however busy the log is.
const CALM: Duration = Duration::from_millis(200);

enum DeliveryOutcome {
    Delivered,
    /// A permanent rejection: a retry would be rejected again.
    Refused(String),
    /// A temporary failure, with the pause the receiver asks for.
    Failed(String, Option<Duration>),
}

pub(super) async fn deliver(board: &PendingNotifications, receiver: &Receiver) {
    for wrong in receiver.try_out().await {
        tracing::warn!(receiver = receiver.name, "notices may not reach this receiver: {wrong}");
    }
    let (mut pace, mut waits, mut untold) = (RetrySchedule::default(), BlockedSince::default(), BTreeMap::new());
    let (mut state, mut changes) = (board.cluster.committed.clone(), board.changes());
    loop {
        state.mark_unchanged();
        changes.mark_unchanged();
        let pending = board.pending(receiver, &mut waits);
        give_up(board, receiver, &mut untold, &pending);
        let wait = pace.wait(clock::monotonic());
        match pending.first() {
            Some(notice) if wait.is_zero() => {
                let outcome = attempt(board, receiver, notice).await;
                settle(board, receiver, notice, outcome, &mut pace);
                continue;
            }
            Some(_) | None => {}
        }
        let tick = if pending.is_empty() { TICK } else { wait.min(TICK) };
        tokio::time::sleep(CALM.min(tick)).await;
        tokio::select! {
            _ = state.changed() => {}
            _ = changes.changed() => {}
            () = tokio::time::sleep(tick.saturating_sub(CALM)) => {}
        }
    }
}

/// Logs notifications that were not delivered and are too old now.
fn give_up(
    board: &PendingNotifications,
    receiver: &Receiver,
    untold: &mut BTreeMap<String, Notification>,
    pending: &[Notification],
) {
    let pending: BTreeMap<String, Notification> =
        pending.iter().map(|notice| (notice.id.clone(), notice.clone())).collect();
    let left = core::mem::replace(untold, pending);
    for notice in expired(left, untold, board.cluster.time.now()) {
        tracing::warn!(receiver = receiver.name, notice = notice.id, "notification abandoned after an hour");
        board.metrics.notification(notice.kind, DeliveryLabel::Expired);
    }
}

/// Notifications that are not pending any more because of their age; the rest was delivered or withdrawn.
fn expired(
    left: BTreeMap<String, Notification>,
    pending: &BTreeMap<String, Notification>,
    now: Timestamp,
) -> Vec<Notification> {
    let is_expired = |notice: &Notification| !pending.contains_key(&notice.id) && now.since(notice.at) >= TOLD_WITHIN;
    left.into_values().filter(is_expired).collect()
}

fn settle(
    board: &PendingNotifications,
    receiver: &Receiver,
    notice: &Notification,
    outcome: DeliveryOutcome,
    pace: &mut RetrySchedule,
) {
    let (metrics, name, id) = (&board.metrics, &receiver.name, &notice.id);
    match outcome {
        DeliveryOutcome::Delivered => {
            tracing::debug!(receiver = name, notice = id, "notification delivered");
            if pace.failures() > 0 {
                tracing::info!(receiver = name, "receiver reachable again");
            }
            metrics.notification(notice.kind, DeliveryLabel::Delivered);
            pace.succeeded();
            board.told(notice, receiver);
        }
        DeliveryOutcome::Refused(why) => {
            tracing::warn!(receiver = name, notice = id, why, "notification refused by the receiver; not sent again");
            metrics.notification(notice.kind, DeliveryLabel::Refused);
            pace.succeeded();
            board.told(notice, receiver);
        }
        DeliveryOutcome::Failed(why, asked) => {
            let jitter = RandomState::new().hash_one(id).to_le_bytes()[0];
            pace.failed(clock::monotonic(), asked, jitter);
            metrics.notification(notice.kind, DeliveryLabel::Failed);
            if pace.failures() == 1 {
                tracing::warn!(
                    receiver = name,
                    notice = id,
                    why,
                    "notification not delivered; retried for an hour at most"
                );
            } else {
                tracing::debug!(receiver = name, notice = id, why, "notification not delivered yet");
            }
        }
    }
}

async fn attempt(board: &PendingNotifications, receiver: &Receiver, notice: &Notification) -> DeliveryOutcome {
    match exchange(board, receiver, notice).await {
        Ok(Reply { status: 200..=299, .. }) => DeliveryOutcome::Delivered,
        // The same bytes would be rejected the next time, or the receiver is permanently gone.
        Ok(Reply { status: status @ (400 | 405 | 406 | 410 | 411 | 413 | 414 | 415 | 422 | 431), .. }) => {
            DeliveryOutcome::Refused(format!("the receiver answered {status}"))
        }
        Ok(Reply { status, retry_after, .. }) => {
            DeliveryOutcome::Failed(format!("the receiver answered {status}"), retry_after)
        }
        Err(why) => DeliveryOutcome::Failed(why, None),
    }
}

async fn exchange(board: &PendingNotifications, receiver: &Receiver, notice: &Notification) -> Result<Reply, String> {
    let (url, mut headers) = (receiver.url().await?, receiver.headers.read().await?);
    let key = signature::key(receiver.secret_file.as_deref()).await?;
    let body = receiver.format.body(&message::of(notice, board));
    let content_type = HeaderValue::from_static(receiver.format.content_type());
    headers.entry(CONTENT_TYPE).or_insert(content_type);
    if let Some(key) = key {
        signature::sign(&key, &notice.id, clock::now(), &body, &mut headers)?;
    }
    post(url, receiver.ca.as_deref(), headers, Bytes::from(body)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use allclear_core::model::id::VmName;

    #[test]
    fn what_was_not_told_within_an_hour_is_given_up_and_nothing_else() {
        let seen = Timestamp(1_000_000);
        let notice = Notification::acted(&VmName::new("db-0"), seen);
        let of =
            |notices: &[Notification]| notices.iter().map(|it| (it.id.clone(), it.clone())).collect::<BTreeMap<_, _>>();
        let (all, none) = (of(core::slice::from_ref(&notice)), BTreeMap::new());
        let hour = Duration::from_hours(1);
        assert_eq!(expired(all.clone(), &none, seen.plus(hour)), core::slice::from_ref(&notice));
        assert_eq!(expired(all.clone(), &all, seen.plus(hour)), []);
        assert_eq!(expired(all, &none, Timestamp(seen.plus(hour).0 - 1)), []);
    }
}
