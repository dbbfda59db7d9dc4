//! By what is counted: sets of words that do not grow.

use allclear_core::string_enum;

/// How this replica acted for another; the numbers are the label of the metric.
#[derive(Clone, Copy)]
pub enum TakeoverLevel {
    /// The leader was silent, and this replica leads instead.
    LeaderSilent,
    /// The leader's metadata channel is stalled: this replica posted for it, or gave leadership away for that reason.
    ChannelStalled,
    /// There was no quorum, and this replica approved alone.
    Alone,
}

string_enum!(TakeoverLevel { LeaderSilent => "2", ChannelStalled => "3", Alone => "4" });

/// What came of telling a receiver something.
#[derive(Clone, Copy)]
pub enum DeliveryLabel {
    Delivered,
    /// It is tried again.
    Failed,
    /// For good.
    Refused,
    /// Its hour was over.
    Expired,
}

string_enum!(DeliveryLabel { Delivered => "delivered", Failed => "failed", Refused => "refused", Expired => "expired" });

/// What became of a trace that this replica was to export.
#[derive(Clone, Copy)]
pub enum ExportLabel {
    Accepted,
    /// The collector does not want it.
    Refused,
    /// It was tried in vain for as long as it is tried.
    GivenUp,
}

string_enum!(ExportLabel { Accepted => "accepted", Refused => "refused", GivenUp => "given_up" });

/// Why somebody on this machine, or at the status port, was refused.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RefusalKind {
    /// Another user at the operators' socket.
    Operator,
    /// A user at the workloads' socket who is not in the configuration.
    Workload,
    /// One more connection to the workloads' socket than there may be.
    Connection,
    /// A session, the name or the registration of another user's workload.
    Session,
    /// A request that would change something.
    Method,
    /// A request for somebody else, or for nobody.
    Host,
    /// A request that a page from elsewhere makes.
    Origin,
}

impl RefusalKind {
    pub(super) const ALL: [Self; 7] =
        [Self::Operator, Self::Workload, Self::Connection, Self::Session, Self::Method, Self::Host, Self::Origin];

    /// At which door, and for which reason.
    pub(super) const fn as_words(self) -> [&'static str; 2] {
        match self {
            Self::Operator => ["operator", "user"],
            Self::Workload => ["workloads", "user"],
            Self::Connection => ["workloads", "too_many"],
            Self::Session => ["workloads", "session"],
            Self::Method => ["status", "method"],
            Self::Host => ["status", "host"],
            Self::Origin => ["status", "origin"],
        }
    }
}
