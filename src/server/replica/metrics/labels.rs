//! The labels of counters: fixed sets of words.

use allclear_core::string_enum;

/// The degradation level at which this replica acted for another; the numbers are the label of the metric.
#[derive(Clone, Copy)]
pub enum TakeoverLevel {
    /// The leader was silent, and this replica leads instead.
    LeaderSilent,
    /// The leader's metadata channel is stalled: this replica posted for the leader, or transferred leadership for this
    /// reason.
    ChannelStalled,
    /// There was no quorum, and this replica approved alone.
    Alone,
}

string_enum!(TakeoverLevel { LeaderSilent => "2", ChannelStalled => "3", Alone => "4" });

/// The outcome of a delivery to a receiver.
#[derive(Clone, Copy)]
pub enum DeliveryLabel {
    Delivered,
    /// The delivery is tried again.
    Failed,
    /// Permanently refused.
    Refused,
    /// The hour for the delivery was over.
    Expired,
}

string_enum!(DeliveryLabel { Delivered => "delivered", Failed => "failed", Refused => "refused", Expired => "expired" });

/// The outcome of a trace export by this replica.
#[derive(Clone, Copy)]
pub enum ExportLabel {
    Accepted,
    /// The collector refused the trace.
    Refused,
    /// All tries within the time limit failed.
    GivenUp,
}

string_enum!(ExportLabel { Accepted => "accepted", Refused => "refused", GivenUp => "given_up" });

/// The reason for the refusal of a caller on this machine, or at the status port.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RefusalKind {
    /// Another user at the operators' socket.
    Operator,
    /// A user at the workloads' socket who is not in the configuration.
    Workload,
    /// A connection to the workloads' socket above the limit.
    Connection,
    /// A session, the name or the registration of another user's workload.
    Session,
    /// A request that would change something.
    Method,
    /// A request for another host, or for no host.
    Host,
    /// A request made by a page of another origin.
    Origin,
}

impl RefusalKind {
    pub(super) const ALL: [Self; 7] =
        [Self::Operator, Self::Workload, Self::Connection, Self::Session, Self::Method, Self::Host, Self::Origin];

    /// The values of the labels `door` and `reason`.
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
