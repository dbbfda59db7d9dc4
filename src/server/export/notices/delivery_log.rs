//! Records deliveries in the log, so that no other leader repeats a notification. Deliveries of the same time become
//! one entry.

use std::time::Duration;

use super::pending::PendingNotifications;
use allclear_core::model::command::{Command, RecordDeliveries};

const AT_ONCE: usize = 256;
const AGAIN_AFTER: Duration = Duration::from_secs(1);

pub(super) async fn keep(board: &PendingNotifications) {
    let mut changes = board.changes();
    loop {
        changes.mark_unchanged();
        let told = board.unnoted(AT_ONCE);
        if told.is_empty() {
            // The sender lives as long as `board`.
            let _ = changes.changed().await;
            continue;
        }
        match board.cluster.propose(&Command::RecordDeliveries(RecordDeliveries { deliveries: told.clone() })).await {
            Ok(_) => {
                for told in &told {
                    tracing::debug!(told.receiver, told.notice, "delivery recorded");
                }
                board.noted(told);
            }
            Err(error) => {
                tracing::debug!(%error, "delivery not recorded yet");
                tokio::time::sleep(AGAIN_AFTER).await;
            }
        }
    }
}
