//! Notifications that only the affected replica can make: a takeover from the leader, or the loss of the quorum.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;

use super::pending::PendingNotifications;
use crate::replica::clock::rfc3339;
use crate::replica::metrics::TakeoverLevel;
use crate::replica::view::primaries;
use allclear_core::model::document::NotBefore;
use allclear_core::model::event::Event;
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::notification::{Notification, NotificationKind};
use allclear_core::model::state::State;

/// Delay of the notification of a quorum loss; an election takes much less time.
const LOST_AFTER: Duration = Duration::from_secs(15);
/// At most this number of open events is named.
const NAMED: usize = 5;

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

/// Adds a notification for each loss of the quorum, and for each return. The receivers of the return are the receivers of
/// this replica's notification of the loss.
pub(super) async fn watch_quorum(board: &PendingNotifications) {
    // The same leadership may be lost again: the id has a number then.
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
    let primaries = |event: &Event| {
        let shown = board.view.event(event.announcement.id.as_str());
        shown.map_or_else(Vec::new, |shown| primaries(&shown))
    };
    let text = format!(
        "{} has had no quorum for {} s, so it begins no hook and approves nothing{}; its last known leader is {}, in term \
         {}{}",
        board.cluster.node.name,
        LOST_AFTER.as_secs(),
        remaining_powers(board.cluster.consensus.members().voters.len()),
        known.by,
        known.term,
        last_known_events(&state, primaries)
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

/// What may still happen without this replica's quorum.
fn remaining_powers(voters: usize) -> &'static str {
    match voters {
        // The conditions are in deploy/docs/guarantees.md, "A pair".
        2 => ", except, alone and after `takeover_after`, a user-initiated event that names only the other VM",
        // The other voters have a majority without this replica.
        3.. => "; the other replicas may have a quorum, and act",
        _ => "",
    }
}

/// The open events, as this replica last knew them: Azure starts and ends them without a quorum, too. `primaries` are the
/// sentences about the primaries on an event's VMs.
fn last_known_events(state: &State, primaries: impl Fn(&Event) -> Vec<String>) -> String {
    let events: Vec<&Event> = state.open_events().filter(|event| !event.is_drill()).collect();
    let named = events.iter().copied().take(NAMED).map(|event| event_with_its_end(event, &primaries(event)));
    let named: Vec<String> = named.collect();
    let more = match events.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    if named.is_empty() { String::new() } else { format!("; open when it last heard: {}{more}", named.join(", ")) }
}

fn event_with_its_end(event: &Event, primaries: &[String]) -> String {
    let announced = &event.announcement;
    let vms: Vec<String> = announced.resources.iter().map(ToString::to_string).collect();
    let ends = match announced.not_before {
        _ if event.stage() >= Stage::Started => String::new(),
        NotBefore::At(at) => format!("; its notice ends at {}", rfc3339(at)),
        NotBefore::Unknown => "; the end of its notice is unknown".into(),
    };
    let stage = event.stage().to_string();
    let known = [stage.as_str()].into_iter().chain(primaries.iter().map(String::as_str)).collect::<Vec<_>>().join("; ");
    format!("{} of {} (event {}, {known}{ends})", announced.kind, vms.join(", "), announced.id)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use allclear_core::model::document::{Announcement, EventType, Source, Status};
    use allclear_core::model::id::{EventId, VmName};
    use allclear_core::model::time::Timestamp;

    #[test]
    fn the_loss_of_a_quorum_names_the_open_events_and_the_ends_of_their_notices() {
        let event = |id: &str, not_before| {
            let announcement = Announcement {
                id: EventId::new(id),
                status: Status::Scheduled,
                kind: EventType::Reboot,
                source: Source::Platform,
                resource_type: String::new(),
                resources: vec![VmName::new("db-0"), VmName::new("db-1")],
                not_before,
                description: String::new(),
                duration: None,
            };
            (EventId::new(id), Arc::new(Event::first_seen_as(announcement, VmName::new("db-0"), Timestamp(0))))
        };
        let primary = |event: &Event| match event.announcement.id.as_str() {
            "a" => vec!["db-0 holds the primary of orders-db".into()],
            _ => Vec::new(),
        };
        let with = |events: Vec<_>| {
            last_known_events(&State { open: events.into_iter().collect(), ..State::default() }, primary)
        };
        assert_eq!(with(Vec::new()), "");
        let told = with(vec![event("a", NotBefore::At(Timestamp(60_000))), event("b", NotBefore::Unknown)]);
        let first = "; open when it last heard: Reboot of db-0, db-1 (event a, announced; db-0 holds the primary of \
                     orders-db; its notice ends at 1970-01-01T00:01:00.000Z)";
        assert_eq!(
            told,
            format!("{first}, Reboot of db-0, db-1 (event b, announced; the end of its notice is unknown)")
        );
        let many = (0..7).map(|number| event(&format!("e{number}"), NotBefore::Unknown)).collect();
        assert!(with(many).ends_with("), and 2 more"));
    }
}
