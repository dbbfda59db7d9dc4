//! Notifications that only the affected replica can make: a takeover from the leader, or the loss of the quorum.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;

use super::pending::PendingNotifications;
use crate::replica::metrics::TakeoverLevel;
use allclear_core::model::notification::{Notification, NotificationKind};

/// Delay of the notification of a quorum loss; an election takes much less time.
const LOST_AFTER: Duration = Duration::from_secs(15);

pub(super) async fn watch_takeovers(board: &PendingNotifications) {
    let mut takeovers = board.metrics.takeovers();
    loop {
        let me = &board.cluster.node.name;
        let text = match takeovers.recv().await {
            Ok(TakeoverLevel::LeaderSilent) => format!("{me} leads now, because the previous leader was unreachable"),
            Ok(TakeoverLevel::ChannelStalled) => {
                format!(
                    "{me} approved in place of its leader, or transferred leadership: the leader's metadata \
                         endpoint was stalled"
                )
            }
            // An isolated approval is notified from the journal.
            Ok(TakeoverLevel::Alone) | Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        board.add(Notification::acted(me, board.cluster.time.now()), text);
    }
}

/// Adds one notification for each loss of the quorum, and one for its return, which only receivers get that were told
/// of the loss by this replica.
pub(super) async fn watch_quorum(board: &PendingNotifications) {
    // A replica that loses the same leadership again says so under another id.
    let mut losses = BTreeMap::new();
    loop {
        board.cluster.wait_quorum_lost(LOST_AFTER).await;
        let lost = tell_of_loss(board, &mut losses);
        board.cluster.wait_quorum().await;
        board.withdraw(NotificationKind::QuorumLost);
        if let Some(lost) = lost {
            let text = format!("resolved: {} has a quorum again", board.cluster.node.name);
            board.add(lost.resolved(board.cluster.time.now()), text);
        }
    }
}

/// Adds the notification. Without a known leader there was no quorum to lose.
fn tell_of_loss(board: &PendingNotifications, losses: &mut BTreeMap<String, u32>) -> Option<Notification> {
    let state = board.cluster.state();
    let known = state.leadership.as_ref()?;
    let text = format!(
        "{} has had no quorum for {} s, so that replica decides nothing; its last known leader is {}, in term {}",
        board.cluster.node.name,
        LOST_AFTER.as_secs(),
        known.by,
        known.term
    );
    let mut lost = Notification::quorum_lost(known, board.cluster.time.now());
    let times = losses.get(&lost.id).copied().unwrap_or_default() + 1;
    *losses = BTreeMap::from([(lost.id.clone(), times)]);
    if times > 1 {
        lost.id = format!("{}/{times}", lost.id);
    }
    board.add(lost.clone(), text);
    Some(lost)
}
