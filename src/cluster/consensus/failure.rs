//! Errors of consensus for its callers: the failure, the place, and the remedy.

use std::path::PathBuf;

use allclear_files::Unsafe;

/// The reason why a replica could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{0}")]
    Options(String),
    #[error("cannot use {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error(
        "cannot read {}: {why}; if the disk is damaged, remove the directory and add this replica as a new replica",
        path.display()
    )]
    Damaged { path: PathBuf, why: String },
    #[error(
        "{} is in use by another process; stop that process first, or give this replica its own data_dir",
        path.display()
    )]
    InUse { path: PathBuf },
    #[error(
        "{} has format {found}, and this program knows formats up to {known}; run the newer program that wrote the \
         directory",
        path.display()
    )]
    NewerFormat { path: PathBuf, found: u32, known: u32 },
    #[error("{} belongs to {what} {found:?}, not {expected:?}; check {what}.name and data_dir", path.display())]
    OfAnother { path: PathBuf, what: &'static str, found: String, expected: String },
    #[error("the data directory cannot be used: {0}")]
    Unsafe(#[from] Unsafe),
    #[error("{} contains no data of a cluster: there is nothing to restore", path.display())]
    NothingStored { path: PathBuf },
    #[error("cannot start from the stored data: {0}")]
    Start(String),
}

impl OpenError {
    /// True if only another configuration solves the error: a restart would be in vain.
    pub const fn is_of_the_configuration(&self) -> bool {
        matches!(self, Self::Options(_) | Self::OfAnother { .. })
    }
}

/// The reason why a request to the cluster was not carried out, or may not have been.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Nothing was accepted: another try is safe.
    #[error("no leader accepted the request, and nothing was changed; try again when a quorum is back")]
    NoLeader,
    /// Nothing was changed, and repeating the unchanged request will not help.
    #[error("{0}")]
    Refused(String),
    /// The request may or may not be carried out, now or later.
    #[error("{0}; check `allclear status` or `allclear member list` before you repeat the request")]
    Unknown(String),
    #[error("this replica has stopped: {0}")]
    Stopped(String),
}

impl RequestError {
    pub(super) fn no_quorum() -> Self {
        Self::Refused("the leader has no quorum; bring replicas or the network back first".into())
    }

    pub(super) fn stopped(why: &impl ToString) -> Self {
        Self::Stopped(why.to_string())
    }

    /// True if certainly nothing was changed.
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Self::NoLeader | Self::Refused(_))
    }
}
