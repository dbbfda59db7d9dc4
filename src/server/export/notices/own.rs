//! What only one replica knows, and tells by itself: that it acts for its leader, and that it has lost its quorum.

use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;

use super::board::Board;
use crate::replica::deeds::Rung;
use allclear_core::model::notification::{Notice, Topic};

/// An election takes much less.
const LOST_AFTER: Duration = Duration::from_secs(15);

pub(super) async fn watch_takeovers(board: &Board) {
    let mut takeovers = board.here.deeds.takeovers();
    loop {
        let me = &board.here.name;
        let text = match takeovers.recv().await {
            Ok(Rung::LeaderSilent) => format!("{me} leads now, because the leader before was silent"),
            Ok(Rung::ChannelStalled) => {
                format!("{me} acted for its leader, or gave leadership away: the leader's metadata channel was stalled")
            }
            // Its journal tells.
            Ok(Rung::Alone) | Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        board.add(Notice::acted(me, board.here.time.now()), text);
    }
}

/// Once for each loss; nothing is told of its end.
pub(super) async fn watch_quorum(board: &Board) {
    loop {
        board.here.misses_its_quorum_for(LOST_AFTER).await;
        tell_of_loss(board);
        board.here.has_its_quorum().await;
        board.withdraw(Topic::QuorumLost);
    }
}

/// A replica that never knew of a leader has lost nothing.
fn tell_of_loss(board: &Board) {
    let state = board.here.state();
    let Some(known) = &state.leadership else { return };
    let text = format!(
        "{} has had no quorum for {} s, so nothing is decided there; the last leader it knows of is {}, in term {}",
        board.here.name,
        LOST_AFTER.as_secs(),
        known.by,
        known.term
    );
    board.add(Notice::quorum_lost(known, board.here.time.now()), text);
}
