//! The folded state: the content of a snapshot. What the machine keeps by key is stored as a list in the keys' order.

use std::collections::{BTreeMap, VecDeque};

use super::pb;
use super::stored::{Stored, named, take};
use super::undecodable::{Fault, Undecodable};
use crate::machine::event::Event;
use crate::machine::id::VmName;
use crate::machine::shared::Shared;
use crate::machine::state::{Replica, State};
use crate::machine::workload::Workload;

impl Stored for State {
    type Message = pb::State;

    fn store(&self) -> pb::State {
        pb::State {
            now_unix_ms: self.now.store(),
            replicas: self.replicas.iter().map(|(name, replica)| store_replica(name, replica)).collect(),
            open: self.open_events().map(Event::store).collect(),
            history: self.closed_events().map(Event::store).collect(),
            attempts: self.attempts,
            leadership: self.leadership.store(),
            suspicions: self.suspicions.iter().map(|(name, known)| (name.clone(), *known).store()).collect(),
            wished: self.wished,
            wishes: self.wishes.store(),
            notices: self.notices.iter().map(|(id, noted)| (id.clone(), noted.clone()).store()).collect(),
        }
    }

    fn restore(message: pb::State) -> Result<Self, Undecodable> {
        let open: Vec<Event> = take!(message.open);
        let open = open.into_iter().map(|event| Ok((event.announcement.id.clone(), event.into())));
        let closed: Vec<Event> = take!(message.history);
        let mut history: VecDeque<_> = closed.into_iter().map(Into::into).collect();
        // It is made in the room in which the events themselves were.
        history.shrink_to_fit();
        Ok(Self {
            now: take!(message.now_unix_ms),
            replicas: named(keyed(message.replicas.into_iter().map(restore_replica)), "replicas")?,
            open: named(keyed(open), "open")?,
            history,
            attempts: message.attempts,
            leadership: take!(message.leadership),
            suspicions: named(keyed(message.suspicions.into_iter().map(Stored::restore)), "suspicions")?,
            wished: message.wished,
            wishes: take!(message.wishes),
            notices: named(keyed(message.notices.into_iter().map(Stored::restore)), "notices")?,
        })
    }
}

fn store_replica(name: &VmName, replica: &Replica) -> pb::Replica {
    pb::Replica {
        name: name.store(),
        workloads: replica.workloads.store(),
        reports: replica.reports,
        document: replica.document.store(),
        discounted_unix_ms: replica.discounted.store(),
        groups: replica.groups.store(),
        dialled: replica.dialled.values().map(Stored::store).collect(),
        conditions: replica.conditions.iter().map(|(name, known)| (name.clone(), *known).store()).collect(),
        away: replica.away.iter().map(|(name, since)| (name.clone(), *since).store()).collect(),
    }
}

fn restore_replica(message: pb::Replica) -> Result<(VmName, Shared<Replica>), Undecodable> {
    let dialled: Vec<Workload> = take!(message.dialled);
    let dialled = dialled.into_iter().map(|workload| Ok((workload.name.clone(), workload)));
    let replica = Replica {
        workloads: take!(message.workloads),
        reports: message.reports,
        document: take!(message.document),
        discounted: take!(message.discounted_unix_ms),
        groups: take!(message.groups),
        dialled: named(keyed(dialled), "dialled")?,
        conditions: named(keyed(message.conditions.into_iter().map(Stored::restore)), "conditions")?,
        away: named(keyed(message.away.into_iter().map(Stored::restore)), "away")?,
    };
    Ok((take!(message.name), replica.into()))
}

pub(super) fn keyed<K: Ord, V>(
    pairs: impl ExactSizeIterator<Item = Result<(K, V), Undecodable>>,
) -> Result<BTreeMap<K, V>, Undecodable> {
    let count = pairs.len();
    let map: BTreeMap<K, V> = pairs.collect::<Result<_, _>>()?;
    if map.len() == count { Ok(map) } else { Err(Fault::Twice.into()) }
}
