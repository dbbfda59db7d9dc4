//! What is bounded: replicas, events and faults of one cluster, and the rule that it does not keep.

use crate::action::Action;
use crate::rule::Rule;

/// All events affect one group, each another member of it, and the group may lose one at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cluster {
    pub(crate) replicas: usize,
    pub(crate) events: &'static [Source],
    pub(crate) bounds: Bounds,
    /// What has happened before the search begins.
    pub(crate) after: &'static [Action],
    /// An event may be in one document for a while before it is in all; otherwise it is in all of them at once, and
    /// has been for long.
    pub(crate) documents_differ: bool,
    /// Worlds that differ only by the numbers of replicas are one. Traces are hard to read then.
    pub(crate) is_symmetric: bool,
    /// The rule that nobody keeps.
    pub(crate) without: Option<Rule>,
}

/// How many there are at most, or have been.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Bounds {
    pub(crate) cuts: u8,
    pub(crate) crashes: u8,
    /// Of a new leader while the old one is well.
    pub(crate) elections: u8,
    pub(crate) removals: u8,
    pub(crate) holds: u8,
    /// Claims that a leader appends while nobody hears it.
    pub(crate) appends: u8,
}

pub(crate) const NONE: Bounds = Bounds { cuts: 0, crashes: 0, elections: 0, removals: 0, holds: 0, appends: 0 };

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Source {
    pub(crate) is_users: bool,
    /// A hook of it may be begun. Then it is not over when it leaves the documents, but when all is put back.
    pub(crate) has_hook: bool,
}

pub(crate) const USER: Source = Source { is_users: true, has_hook: false };
pub(crate) const USER_WITH_HOOK: Source = Source { is_users: true, has_hook: true };
pub(crate) const PLATFORM: Source = Source { is_users: false, has_hook: false };
pub(crate) const PLATFORM_WITH_HOOK: Source = Source { is_users: false, has_hook: true };

impl Cluster {
    pub(crate) const fn new(replicas: usize, events: &'static [Source], bounds: Bounds) -> Self {
        Self { replicas, events, bounds, after: &[], documents_differ: false, is_symmetric: false, without: None }
    }

    pub(crate) const fn left_out(self, rule: Rule) -> Self {
        Self { without: Some(rule), ..self }
    }

    pub(crate) const fn with_differing_documents(self) -> Self {
        Self { documents_differ: true, ..self }
    }

    pub(crate) const fn symmetric(self) -> Self {
        Self { is_symmetric: true, ..self }
    }

    pub(crate) const fn after(self, after: &'static [Action]) -> Self {
        Self { after, ..self }
    }

    pub(crate) fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    pub(crate) fn others(&self, event: usize) -> impl Iterator<Item = usize> {
        (0..self.events.len()).filter(move |other| *other != event)
    }
}
