//! Everything that can go wrong in this room, as its callers see it: what, where, what to do.

use std::path::PathBuf;

use super::options::MAX_REPLICAS;

/// Why a replica could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{0}")]
    Options(String),
    #[error("cannot use {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error(
        "cannot read {}: {why}; if the disk is damaged, remove the directory and add this replica as a new one",
        path.display()
    )]
    Damaged { path: PathBuf, why: String },
    #[error(
        "{} is in use by another process; stop that one first, or give this replica its own data_dir",
        path.display()
    )]
    InUse { path: PathBuf },
    #[error(
        "{} has format {found}, this program knows up to {known}; run the newer program that wrote it",
        path.display()
    )]
    NewerFormat { path: PathBuf, found: u32, known: u32 },
    #[error("{} belongs to cluster {found:?}, not {expected:?}; check cluster.name and data_dir", path.display())]
    ForeignCluster { path: PathBuf, found: String, expected: String },
    #[error("{} belongs to replica {found:?}, not {expected:?}; check replica.name and data_dir", path.display())]
    OtherReplica { path: PathBuf, found: String, expected: String },
    #[error("{} holds nothing of a cluster: there is nothing to restore", path.display())]
    NothingStored { path: PathBuf },
    #[error("cannot start from what is stored: {0}")]
    Start(String),
}

impl OpenError {
    /// Only another configuration mends it: to start again would be in vain.
    pub const fn is_of_the_configuration(&self) -> bool {
        match self {
            Self::Options(_) | Self::ForeignCluster { .. } | Self::OtherReplica { .. } => true,
            Self::Io { .. }
            | Self::Damaged { .. }
            | Self::InUse { .. }
            | Self::NewerFormat { .. }
            | Self::NothingStored { .. }
            | Self::Start(_) => false,
        }
    }
}

/// Why a proposal got no verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// Nothing was taken.
    #[error("no leader took the proposal in time; nothing was changed, try again once a quorum is back")]
    NoLeader,
    /// It may or may not be, or become, committed.
    #[error("the proposal may or may not be committed: {0}; read the state before repeating it")]
    Unknown(String),
    #[error("the proposal has {size} bytes, at most {limit} are taken")]
    TooLarge { size: usize, limit: usize },
    #[error("the leader cannot decode the proposal: {0}")]
    Undecodable(String),
    #[error("this replica has stopped: {0}")]
    Fatal(String),
}

impl ProposeError {
    /// Nothing was changed, for sure.
    pub const fn is_refusal(&self) -> bool {
        match self {
            Self::NoLeader | Self::TooLarge { .. } | Self::Undecodable(_) => true,
            Self::Unknown(_) | Self::Fatal(_) => false,
        }
    }
}

/// Why a reading could not be confirmed. Nothing that was read may be relied on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfirmError {
    #[error("no leader answered in time")]
    NoLeader,
    #[error("the leader reached no quorum in time")]
    NoQuorum,
    #[error("this replica has applied {applied:?}, the cluster is at {index}; it did not catch up in time")]
    Behind { applied: Option<u64>, index: u64 },
    #[error("this replica has stopped: {0}")]
    Fatal(String),
}

/// Why leadership stayed where it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    #[error("only the leader hands leadership over; it is {0:?}")]
    NotLeader(Option<String>),
    #[error("{0} is no voter of this cluster")]
    NoVoter(String),
    #[error("{0} is not up to date or does not answer")]
    NotReady(String),
    #[error("there is no other voter that leadership could go to")]
    Alone,
    #[error("{0} did not take over in time")]
    Late(String),
    #[error("this replica has stopped: {0}")]
    Fatal(String),
}

/// Why the membership stayed as it was, or may have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    #[error("only the leader changes the membership; it is {0:?}")]
    NotLeader(Option<String>),
    #[error("{name} cannot be added: {why}; start it first")]
    Silent { name: String, why: String },
    #[error("the address {0:?} is not host:port")]
    Address(String),
    #[error("{0} is a member with another data_dir; remove it first, its old vote must not return")]
    OldNode(String),
    #[error("the leader's configuration has {name} at {known}; change cluster.replicas on every replica instead")]
    OtherAddress { name: String, known: String },
    #[error(
        "the data directory of {0} is of the time before this cluster was restored from one disk; stop {0}, empty its \
         data_dir and start it again, then it is brought in"
    )]
    OtherLineage(String),
    #[error(
        "{0} holds the log of another cluster, which must not mix with this one's; stop it, empty its data_dir, start it \
         again and repeat this"
    )]
    OtherCluster(String),
    #[error("{0} cannot be added: this cluster has {MAX_REPLICAS} replicas, which is the limit; remove one first")]
    Full(String),
    #[error("{0} is no member of this cluster")]
    NoMember(String),
    #[error("{0} is the only voter; nobody could decide anything without it")]
    LastVoter(String),
    #[error("the leader reaches no quorum; bring replicas or the network back first")]
    NoQuorum,
    #[error(
        "without {name} there would be no quorum: {} of the remaining voters do not answer ({}); bring them back or \
         remove them first",
        silent.len(), silent.join(", ")
    )]
    WouldLoseQuorum { name: String, silent: Vec<String> },
    #[error("the change was refused: {0}")]
    Refused(String),
    #[error("{0} is a learner and not up to date yet; it goes on catching up, add it again later to make it a voter")]
    CatchingUp(String),
    #[error("leadership moved before the change ended; repeat it unless the members are as wanted")]
    Interrupted,
    #[error("the change did not end in time; look at the members before repeating it")]
    Late,
    #[error("this replica has stopped: {0}")]
    Fatal(String),
}

/// Why an operator's wish about members or leadership was not fulfilled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error("no leader answers; nothing was changed, try again once a quorum is back")]
    NoLeader,
    /// Nothing was changed.
    #[error("{0}")]
    Refused(String),
    /// It may or may not be done.
    #[error("{0}; look at `allclear member list` before repeating it")]
    Unknown(String),
    #[error("this replica has stopped: {0}")]
    Stopped(String),
}

impl ChangeError {
    /// Nothing was changed, for sure.
    pub const fn is_refusal(&self) -> bool {
        match self {
            Self::NoLeader | Self::Refused(_) => true,
            Self::Unknown(_) | Self::Stopped(_) => false,
        }
    }
}

/// Why this replica must exit: its disk failed, or it met something it must not skip.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fatal(pub String);
