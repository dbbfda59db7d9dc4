//! Notifications to other systems: each configured receiver gets its kinds once for the whole cluster, in the order in
//! which things happened.
//!
//! Nothing is queued. The pending notifications of a receiver are computed from the state, and each delivery is
//! recorded in the log. So a new leader continues where the previous one stopped; a delivery under way at that time is
//! repeated under the same id. Nothing else waits for a receiver, and no receiver for another.

mod delivery;
mod delivery_log;
mod encoding;
mod format;
mod local_events;
mod message;
mod pending;
pub mod receiver;
mod sentence;
mod signature;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use self::pending::PendingNotifications;
use self::receiver::Receiver;
use crate::replica::SharedParts;
use crate::replica::view::View;

/// Delivers notifications until `stop`; without receivers the task ends at once. `page` is the address of the status
/// page for people.
pub async fn tell(
    shared: SharedParts,
    view: View,
    receivers: Vec<Receiver>,
    page: Option<String>,
    stop: CancellationToken,
) {
    if receivers.is_empty() {
        return;
    }
    let board = PendingNotifications::new(&shared, view, page);
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
