//! The folded state: the content of a snapshot.

use super::pb;
use super::stored::{Paired, Stored};
use super::tables::{message, pair, store, take};
use super::undecodable::Undecodable;
use crate::machine::id::VmName;
use crate::machine::state::{Replica, State};

message!(State as State {
    now: now_unix_ms,
    replicas: replicas,
    open: open,
    history: history,
    attempts: attempts,
    leadership: leadership,
    suspicions: suspicions,
    wished: wished,
    wishes: wishes,
    notices: notices,
});

pair!(VmName, Replica as Replica {
    name: name,
    {
        workloads: workloads,
        reports: reports,
        document: document,
        discounted: discounted_unix_ms,
        groups: groups,
        dialled: dialled,
        conditions: conditions,
        away: away,
    }
});
