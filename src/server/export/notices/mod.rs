//! Notices to other systems: each receiver of the configuration is told what it wants to know, once for the whole
//! cluster, in the order in which it happened.
//!
//! Nothing is queued. What a receiver has yet to be told is computed from the state, as everything is that a leader does,
//! and what it was told is noted in the log. So a new leader goes on where the one before it was stopped; what was under
//! way just then is told again, under the same id. Nothing of allclear waits for a receiver, and none for another.

mod delivery;
mod delivery_log;
mod encoding;
mod format;
mod local_events;
mod message;
mod pending;
pub mod receiver;
mod signature;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use self::pending::PendingNotifications;
use self::receiver::Receiver;
use crate::replica::SharedParts;
use crate::replica::view::View;

/// Tells until it is stopped; with nobody to tell it ends at once.
pub async fn tell(shared: SharedParts, view: View, receivers: Vec<Receiver>, stop: CancellationToken) {
    if receivers.is_empty() {
        return;
    }
    let board = PendingNotifications::new(&shared, view);
    let deliveries = join_all(receivers.iter().map(|receiver| delivery::deliver(&board, receiver)));
    let everything = async {
        tokio::join!(
            local_events::watch_quorum(&board),
            local_events::watch_takeovers(&board),
            delivery_log::keep(&board),
            deliveries
        );
    };
    stop.run_until_cancelled(everything).await;
}
