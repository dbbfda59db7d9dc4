//! The outcome of a posted approval.
//!
//! Refuses to guess: "accepted" needs the documented answer, "not sent" needs proof, the rest is unknown and is settled
//! by a later document.

use super::no_information::NoInformation;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Approval {
    /// Status 200, the one documented answer for a valid id.
    Accepted,
    /// Any definite error status, 410, 429, 500 and 503 among them, and a redirect: the service (or another server in
    /// its place) did not accept the request. Should a 5xx have been accepted after all, the repetition does no harm: a
    /// valid id is answered with 200 also after an earlier approval, and the next document shows the approval.
    Refused(u16),
    /// Certainly never reached the service: no connection was made.
    NotSent(NoInformation),
    /// Sent, or perhaps sent, without a usable answer: only a later document can tell.
    Unknown(NoInformation),
}

impl Approval {
    pub(super) fn from_status(code: u16) -> Self {
        match code {
            200 => Self::Accepted,
            300..=599 => Self::Refused(code),
            // Other success codes are undocumented: neither done nor rejected.
            _ => Self::Unknown(NoInformation::Status {
                code,
                said: "the answer is not from the metadata service".into(),
            }),
        }
    }

    pub(super) fn from_failure(why: NoInformation) -> Self {
        if why.never_sent() { Self::NotSent(why) } else { Self::Unknown(why) }
    }
}
