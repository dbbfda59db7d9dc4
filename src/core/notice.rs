//! What other systems are told of a cluster: which notices are due, and which of them the log knows to have been told.
//! A notice is told within an hour of what it tells, or not at all; so what is known of it is soon forgotten.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::time::Duration;

use super::apply::Applied;
use super::blocker::Blocker;
use super::command::Ignored;
use super::event::Event;
use super::explain::explain;
use super::id::{EventId, VmName};
use super::lifecycle::Stage;
use super::situation::{Channel, Situation};
use super::slot::Slot;
use super::state::State;
use super::suspicion::Leadership;
use super::time::Timestamp;

use super::workload::Member;

/// From the moment that a notice tells of.
pub const TOLD_WITHIN: Duration = Duration::from_hours(1);
/// A replica that approved alone tells it itself as soon as it reaches anybody: the leader leaves it that much time.
const ACCOUNT_FIRST: Duration = Duration::from_secs(10);
/// Open events whose blocker is asked for, the oldest first.
const EXPLAINED: usize = 100;
/// Notices that the state remembers, and the letters of their names.
const REMEMBERED: usize = 4_096;
/// Longer than anybody could tell it again, by whatever it counts.
const REMEMBERED_FOR: Duration = Duration::from_hours(2);
const NAME_LIMIT: usize = 512;
const RECEIVERS: usize = 16;

/// In the order in which they are told of one moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Topic {
    Announced,
    /// The event has waited for the same for longer than somebody wants to.
    Blocked,
    /// A replica acted for another: it leads instead of one that was silent, or approved alone.
    Takeover,
    AllClear,
    Started,
    Closed,
    /// Restoring a member fails, and nobody else of its group is stopped or approved meanwhile.
    RestoreFailed,
    ChannelStalled,
    QuorumLost,
}

words!(Topic {
    Announced => "announced",
    Blocked => "blocked",
    Takeover => "takeover",
    AllClear => "all_clear",
    Started => "started",
    Closed => "closed",
    RestoreFailed => "restore_failed",
    ChannelStalled => "channel_stalled",
    QuorumLost => "quorum_lost",
});

/// Something that is worth telling, once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Notice {
    /// When it came about.
    pub at: Timestamp,
    pub topic: Topic,
    pub subject: Subject,
    /// The same whoever tells it.
    pub id: String,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Subject {
    Event(EventId),
    Member(Member),
    Replica(VmName),
    Cluster,
}

impl Notice {
    /// An event that comes back under its id is another one, by when it was first seen.
    fn of(event: &Event, topic: Topic, at: Timestamp) -> Self {
        let (id, Timestamp(first_seen)) = (&event.announcement.id, event.first_seen());
        Self { at, topic, subject: Subject::Event(id.clone()), id: format!("{id}@{first_seen}/{topic}") }
    }

    /// The event has waited for `what` for too long.
    fn blocked(event: &Event, what: &str, at: Timestamp) -> Self {
        let notice = Self::of(event, Topic::Blocked, at);
        Self { id: format!("{}/{what}", notice.id), ..notice }
    }

    /// Once for each time that the member is taken.
    fn restore_failed(member: &Member, stint: u64, since: Timestamp) -> Self {
        let id = format!("{}/{}/{stint}", member.path(), Topic::RestoreFailed);
        Self { at: since, topic: Topic::RestoreFailed, subject: Subject::Member(member.clone()), id }
    }

    /// A replica approved the event alone. Neither it nor the log need to know when the other first saw it.
    pub fn alone(event: &EventId, approver: &VmName, approved_at: Timestamp, at: Timestamp) -> Self {
        let id = format!("{event}/{}/{approver}/{}", Topic::Takeover, approved_at.0);
        Self { at, topic: Topic::Takeover, subject: Subject::Event(event.clone()), id }
    }

    /// A replica acts for its leader.
    pub fn acted(replica: &VmName, at: Timestamp) -> Self {
        let id = format!("{replica}/{}/{}", Topic::Takeover, at.0);
        Self { at, topic: Topic::Takeover, subject: Subject::Replica(replica.clone()), id }
    }

    /// The replicas that lost the same leadership say the same.
    pub fn quorum_lost(known: &Leadership, at: Timestamp) -> Self {
        let id = format!("{}/{}-{}", Topic::QuorumLost, known.term, known.turn);
        Self { at, topic: Topic::QuorumLost, subject: Subject::Cluster, id }
    }

    /// At most one an hour, and by when its last document came, which every leader knows.
    fn stalled(replica: &VmName, since: Timestamp) -> Self {
        let hours = since.0.div_euclid(i64::try_from(TOLD_WITHIN.as_millis()).unwrap_or(i64::MAX));
        let id = format!("{replica}/{}/{hours}", Topic::ChannelStalled);
        Self { at: since, topic: Topic::ChannelStalled, subject: Subject::Replica(replica.clone()), id }
    }

    /// Everybody knows of it, so it is noted who was told. The rest is told by whoever knows.
    pub fn is_of_the_cluster(&self) -> bool {
        match (self.topic, &self.subject) {
            (Topic::QuorumLost, _) | (Topic::Takeover, Subject::Replica(_)) => false,
            (_, Subject::Event(_) | Subject::Member(_) | Subject::Replica(_) | Subject::Cluster) => true,
        }
    }

    fn is_due(&self, now: Timestamp) -> bool {
        self.at <= now && now.since(self.at) < TOLD_WITHIN
    }
}

/// A notice that a receiver has, or that is not told to it any more.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Told {
    pub notice: String,
    pub receiver: String,
}

/// What the log knows of one notice.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Noted {
    /// When a receiver was first noted to have it.
    pub at: Timestamp,
    pub receivers: BTreeSet<String>,
}

impl State {
    pub fn is_told(&self, notice: &str, receiver: &str) -> bool {
        self.notices.get(notice).is_some_and(|noted| noted.receivers.contains(receiver))
    }
}

/// Since when each open event waits for what it waits for. The log does not tell, so every leader counts anew.
#[derive(Default, Debug)]
pub struct Waits(BTreeMap<EventId, Wait>);

#[derive(Debug)]
struct Wait {
    what: String,
    since: Timestamp,
}

impl Waits {
    pub fn look(&mut self, state: &State, situation: &Situation) {
        let mut open: Vec<&Event> = state.open_events().filter(|event| !event.is_drill()).collect();
        open.sort_by_key(|event| event.first_seen());
        let waiting = |event: &&Event| Some((event.announcement.id.clone(), waits_for(state, event, situation)?));
        let waiting: BTreeMap<EventId, String> = open.iter().take(EXPLAINED).filter_map(waiting).collect();
        self.0.retain(|id, wait| waiting.get(id) == Some(&wait.what));
        for (id, what) in waiting {
            self.0.entry(id).or_insert(Wait { what, since: situation.now });
        }
    }

    pub fn forget(&mut self) {
        self.0.clear();
    }

    fn longer_than<'a>(&'a self, state: &'a State, span: Duration) -> impl Iterator<Item = Notice> + use<'a> {
        let notice = move |(id, wait): (&EventId, &Wait)| {
            Some(Notice::blocked(state.open_event(id)?, &wait.what, wait.since.plus(span)))
        };
        self.0.iter().filter_map(notice)
    }
}

/// What somebody could do something about; `None` while it waits for its time, or for others.
fn waits_for(state: &State, event: &Event, situation: &Situation) -> Option<String> {
    let blocker = explain(state, event, situation)?;
    if matches!(blocker, Blocker::TooEarly { .. } | Blocker::Observing | Blocker::WaitingForPlatform { .. }) {
        return None;
    }
    let code = blocker.code();
    Some(blocker.hook(state).map_or_else(|| code.to_string(), |hook| format!("{code}/{hook}")))
}

/// What the leader has to tell now, in the order in which it happened; what is told already is among it.
pub fn due(state: &State, situation: &Situation, waits: &Waits, blocked_after: Duration) -> Vec<Notice> {
    let now = situation.now;
    let is_recent = |event: &&Event| event.entered_at(Stage::Closed).is_none_or(|at| now.since(at) < TOLD_WITHIN);
    let events = state.open_events().chain(state.closed_events().rev().take_while(is_recent));
    let of_events = events.filter(|event| !event.is_drill()).flat_map(of_event);
    let all = of_events.chain(waits.longer_than(state, blocked_after)).chain(failing(state)).chain(stalled(situation));
    let mut due: Vec<Notice> = all.filter(|notice| notice.is_due(now)).collect();
    due.sort_unstable();
    due
}

fn of_event(event: &Event) -> impl Iterator<Item = Notice> + use<> {
    let moments = [
        (Topic::Announced, Some(event.first_seen())),
        (Topic::AllClear, event.entered_at(Stage::Approved).or(event.accepted_at())),
        (Topic::Started, event.entered_at(Stage::Started)),
        (Topic::Closed, event.entered_at(Stage::Closed)),
    ];
    let stages = moments.map(|(topic, at)| at.map(|at| Notice::of(event, topic, at)));
    let alone = event.takeovers.iter().filter(|takeover| takeover.may_be_posted()).filter_map(|takeover| {
        let known = takeover.recorded?.plus(ACCOUNT_FIRST);
        Some(Notice::alone(&event.announcement.id, &takeover.approver, takeover.at, known))
    });
    let alone: Vec<Notice> = alone.collect();
    stages.into_iter().flatten().chain(alone)
}

fn failing(state: &State) -> impl Iterator<Item = Notice> {
    let notice = |(member, slot): (&Member, &Slot)| {
        let failing = state.failing_return(member)?;
        Some(Notice::restore_failed(member, slot.stint, failing.since))
    };
    state.slots.iter().filter_map(notice)
}

fn stalled(situation: &Situation) -> impl Iterator<Item = Notice> {
    let is_stalled = |name: &VmName| {
        let contact = situation.contacts.get(name)?;
        let since = contact.document_age.map_or(contact.channel_since, |age| situation.now.minus(age));
        (contact.reachable && contact.channel == Channel::Stalled).then_some(since)
    };
    situation.members.iter().filter_map(move |name| Some(Notice::stalled(name, is_stalled(name)?)))
}

/// Notes what was told, and forgets what nobody would tell any more.
pub(super) fn notified(state: &mut State, told: &[Told]) -> Applied {
    let now = state.now;
    let is_fit = |told: &&Told| told.notice.len() <= NAME_LIMIT && told.receiver.len() <= NAME_LIMIT;
    let is_news = |told: &&Told| !state.is_told(&told.notice, &told.receiver);
    let news: Vec<&Told> = told.iter().filter(is_fit).filter(is_news).collect();
    if news.is_empty() {
        return Err(Ignored::Repeated);
    }
    state.notices.retain(|_, noted| now.since(noted.at) < REMEMBERED_FOR);
    for Told { notice, receiver } in news {
        if state.notices.len() >= REMEMBERED && !state.notices.contains_key(notice) {
            continue;
        }
        let noted = state.notices.entry(notice.clone()).or_insert(Noted { at: now, receivers: BTreeSet::new() });
        if noted.receivers.len() < RECEIVERS {
            noted.receivers.insert(receiver.clone());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
