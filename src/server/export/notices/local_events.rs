//! Notifications that only the affected replica can make: the replica acted for its leader, or has lost its quorum.

use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;

use super::pending::PendingNotifications;
use crate::replica::metrics::TakeoverLevel;
use allclear_core::model::notification::{Notification, NotificationKind};

/// A quorum loss is notified after this time; an election takes much less.
const LOST_AFTER: Duration = Duration::from_secs(15);

pub(super) async fn watch_takeovers(board: &PendingNotifications) {
    let mut takeovers = board.metrics.takeovers();
    loop {
        let me = &board.cluster.node.name;
        let text = match takeovers.recv().await {
            Ok(TakeoverLevel::LeaderSilent) => format!("{me} leads now, because the leader before was silent"),
            Ok(TakeoverLevel::ChannelStalled) => {
                format!("{me} acted for its leader, or gave leadership away: the leader's metadata channel was stalled")
            }
            // An isolated approval is notified from the journal.
            Ok(TakeoverLevel::Alone) | Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        board.add(Notification::acted(me, board.cluster.time.now()), text);
    }
}

/// Adds one notification for each loss of the quorum, and none for its return.
pub(super) async fn watch_quorum(board: &PendingNotifications) {
    loop {
        board.cluster.wait_quorum_lost(LOST_AFTER).await;
        tell_of_loss(board);
        board.cluster.wait_quorum().await;
        board.withdraw(NotificationKind::QuorumLost);
    }
}

/// Adds the notification. A replica that never knew a leader has lost no quorum.
fn tell_of_loss(board: &PendingNotifications) {
    let state = board.cluster.state();
    let Some(known) = &state.leadership else { return };
    let text = format!(
        "{} has had no quorum for {} s, so nothing is decided there; the last leader it knows of is {}, in term {}",
        board.cluster.node.name,
        LOST_AFTER.as_secs(),
        known.by,
        known.term
    );
    board.add(Notification::quorum_lost(known, board.cluster.time.now()), text);
}
