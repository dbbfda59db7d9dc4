//! Errors of decoding, for a reader of the log.

use thiserror::Error;

/// Bytes that this program cannot decode, and the part with the fault.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{place} {fault}")]
pub struct Undecodable {
    /// The message and the fields on the way to the fault, as `entry.command.workloads.hooks.phase`.
    pub place: String,
    pub fault: DecodeFault,
}

/// The fault of one part.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum DecodeFault {
    #[error("is damaged: {0}")]
    Damaged(prost::DecodeError),
    #[error("is missing: it was written by a newer version of allclear, or it is damaged; upgrade this replica")]
    Missing,
    #[error("is unspecified, which no version of allclear writes: it is damaged")]
    Unspecified,
    #[error("is {0}, which is not known here: it was written by a newer version of allclear; upgrade this replica")]
    UnknownNumber(i32),
    #[error("is of a kind not known here: it was written by a newer version of allclear; upgrade this replica")]
    UnknownVariant,
    #[error("holds fields not known here: it was written by a newer version of allclear; upgrade this replica")]
    UnknownFields,
    #[error("is {0}, which is more than any version of allclear writes: it is damaged")]
    OutOfRange(u32),
    #[error("names the same twice: it is damaged")]
    Twice,
}

impl From<DecodeFault> for Undecodable {
    fn from(fault: DecodeFault) -> Self {
        Self { place: String::new(), fault }
    }
}

impl Undecodable {
    /// The error with `place` as the outer level.
    pub(super) fn within(mut self, place: &str) -> Self {
        self.place = if self.place.is_empty() { place.into() } else { format!("{place}.{}", self.place) };
        self
    }
}
