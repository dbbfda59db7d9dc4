//! Reasons for a request without information: every way a metadata endpoint fails, as data.
//!
//! Refuses to become a document: there is no conversion to "no events" here or anywhere else (S6).

use core::time::Duration;

/// One request without a usable answer. Earlier knowledge remains unchanged.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoInformation {
    /// Permanent on some machines (`imds.md`, status codes).
    #[error("the metadata endpoint answered 200 with an empty body; its agent says nothing, another replica must see")]
    EmptyBody,
    #[error("the metadata endpoint's answer is not JSON ({why}); check that nothing else answers at its address")]
    NotJson { why: String },
    #[error("the metadata endpoint's answer is JSON but no object; check that nothing else answers at its address")]
    NotObject,
    #[error("the metadata endpoint's answer has no integer DocumentIncarnation, so it is no events document")]
    NoIncarnation,
    #[error("the metadata endpoint's answer has no Events array, so it is no events document")]
    NoEvents,
    #[error("the metadata endpoint lists {count} events, more than the {limit} that are read")]
    TooManyEvents { count: usize, limit: usize },
    #[error("the metadata endpoint's answer is longer than {limit} bytes; it was not read to its end")]
    TooLarge { limit: usize },
    #[error("the instance metadata names no VM (compute.name); set [replica] name to the name that events list")]
    NoName,
    /// 400 with the vendor's api-version object.
    #[error("the metadata endpoint refuses the configured api-version ({said}); it offers {}", newest.join(", "))]
    VersionRefused { said: String, newest: Vec<String> },
    /// Redirects are not followed: the service sends none, so a redirect comes from another server.
    #[error(
        "the metadata endpoint answered with a redirect ({code}), which is not followed; check [metadata] endpoint"
    )]
    Redirect { code: u16 },
    /// `said` is the vendor's `error` text, or nothing.
    #[error("the metadata endpoint answered with status {code} ({said}); it is asked again")]
    Status { code: u16, said: String },
    #[error("the metadata endpoint did not answer within {after:?}; it is asked again")]
    Timeout { after: Duration },
    #[error("the metadata endpoint refuses connections; check [metadata] endpoint and that its agent runs")]
    Refused,
    #[error("no connection to the metadata endpoint ({why}); check [metadata] endpoint and the route to it")]
    NotConnected { why: String },
    #[error("the metadata endpoint reset the connection; it is asked again")]
    Reset,
    #[error("the metadata endpoint's answer broke off ({why}); it is asked again")]
    BrokenOff { why: String },
    /// A poll cancelled for an approval, since there is one request at a time: means nothing about the endpoint.
    #[error("the poll was given up for an approval that had to be posted; it is asked again")]
    GaveWay,
}

impl NoInformation {
    /// The word in `allclear_metadata_polls_total{result}`; a document counts as `document`.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::EmptyBody => "empty_body",
            Self::NotJson { .. } => "not_json",
            Self::NotObject => "not_object",
            Self::NoIncarnation => "no_incarnation",
            Self::NoEvents => "no_events_array",
            Self::TooManyEvents { .. } => "too_many_events",
            Self::TooLarge { .. } => "too_large",
            Self::NoName => "no_name",
            Self::VersionRefused { .. } => "version_refused",
            Self::Redirect { .. } => "redirect",
            Self::Status { code: 410, .. } => "moving",
            Self::Status { code: 429, .. } => "throttled",
            Self::Status { code: 400..=499, .. } => "client_error",
            Self::Status { code: 500..=599, .. } => "server_error",
            Self::Status { .. } => "other_status",
            Self::Timeout { .. } => "timeout",
            Self::Refused => "refused",
            Self::NotConnected { .. } => "not_connected",
            Self::Reset => "reset",
            Self::BrokenOff { .. } => "broken_off",
            Self::GaveWay => "gave_way",
        }
    }

    /// True if the service accepted the request: a whole answer with status 200, even without a document. The first
    /// such answer may take two minutes (`imds.md`, status codes).
    pub const fn answered(&self) -> bool {
        !matches!(
            self,
            Self::VersionRefused { .. }
                | Self::Redirect { .. }
                | Self::Status { .. }
                | Self::Timeout { .. }
                | Self::Refused
                | Self::NotConnected { .. }
                | Self::Reset
                | Self::BrokenOff { .. }
                | Self::GaveWay
        )
    }

    /// True if the request certainly never reached the service: no connection was made.
    pub const fn never_sent(&self) -> bool {
        matches!(self, Self::Refused | Self::NotConnected { .. })
    }

    /// True if the failure is the endpoint's; a poll cancelled for an approval is no failure.
    pub const fn is_failure(&self) -> bool {
        !matches!(self, Self::GaveWay)
    }
}
