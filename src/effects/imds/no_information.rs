//! Reasons for a request without information: every way a metadata endpoint fails, as data.
//!
//! Refuses to become a document: there is no conversion to "no events" here or anywhere else (S6).

use core::time::Duration;

/// One request without a usable answer. Earlier knowledge remains unchanged.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoInformation {
    /// Permanent on some machines (`SPEC.md` 17.5).
    #[error("the metadata endpoint answered 200 with an empty body; another replica has to report the events")]
    EmptyBody,
    #[error("the metadata endpoint's answer is not JSON ({why}); check that no other program answers at its address")]
    NotJson { why: String },
    #[error(
        "the metadata endpoint's answer is JSON, but not an object; check that no other program answers at its \
             address"
    )]
    NotObject,
    #[error("the metadata endpoint's answer is not an events document: DocumentIncarnation is not an integer")]
    NoIncarnation,
    #[error("the metadata endpoint's answer is not an events document: Events is not an array")]
    NoEvents,
    #[error("the metadata endpoint lists {count} events; allclear reads at most {limit}")]
    TooManyEvents { count: usize, limit: usize },
    #[error("the metadata endpoint's answer is longer than the limit of {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the instance metadata names no VM (compute.name); set [replica] name to the name that events list")]
    NoName,
    #[error("the metadata endpoint's answer has no token (access_token, expires_in)")]
    NoToken,
    /// 400 with the vendor's api-version object.
    #[error("the metadata endpoint refuses the requested api-version ({said}); the endpoint offers {}", newest.join(", "))]
    VersionRefused { said: String, newest: Vec<String> },
    /// 404: public handlers take it for a version that is not served, and it says less than the object of a 400.
    #[error(
        "the metadata endpoint answered with status 404 ({said}): it does not serve the requested api-version, or another \
         program answers at its address; after three such answers in a row allclear requests an older version"
    )]
    NotServed { said: String },
    /// Redirects are not followed: the service sends none, so a redirect comes from another server.
    #[error(
        "the metadata endpoint answered with a redirect ({code}), and allclear follows no redirects; check [metadata] \
         endpoint"
    )]
    Redirect { code: u16 },
    /// 403 or 421 of the Metadata Security Protocol: an agent on the VM checks who asks.
    #[error(
        "the metadata endpoint answered with status {code}: the Metadata Security Protocol of this VM does not let \
         allclear ask; add the program and the user of allclear to the allow-list, with the privileges \
         /metadata/scheduledevents and /metadata/instance; /var/lib/azure-proxy-agent/ProxyAgent.Connection.log lists \
         the refused requests"
    )]
    NotAllowed { code: u16 },
    /// 502: the service or, under the Metadata Security Protocol, the agent on the VM.
    #[error(
        "the metadata endpoint answered with status 502: under the Metadata Security Protocol the agent of this VM does \
         not reach the service; /var/lib/azure-proxy-agent/ProxyAgent.Connection.log says why; the request is retried"
    )]
    BadGateway,
    /// `said` is the vendor's `error` text, or nothing.
    #[error("the metadata endpoint answered with status {code} ({said}); the request is retried")]
    Status { code: u16, said: String },
    #[error("the metadata endpoint did not answer within {after:?}; the request is retried")]
    Timeout { after: Duration },
    #[error(
        "the metadata endpoint refuses connections; check [metadata] endpoint, and that the service behind the \
             endpoint runs"
    )]
    Refused,
    #[error("no connection to the metadata endpoint ({why}); check [metadata] endpoint and the route to it")]
    NotConnected { why: String },
    #[error("the metadata endpoint reset the connection; the request is retried")]
    Reset,
    #[error("the metadata endpoint's answer is incomplete ({why}); the request is retried")]
    BrokenOff { why: String },
    /// A poll cancelled for an approval, since there is one request at a time: means nothing about the endpoint.
    #[error("the poll was cancelled in favour of an approval; the poll is retried")]
    GaveWay,
    /// An approval that was not sent, since there is one request at a time: means nothing about the endpoint.
    #[error("another request to the metadata endpoint took longer than {after:?}, so the approval was not sent")]
    Queued { after: Duration },
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
            Self::NoToken => "no_token",
            Self::VersionRefused { .. } => "version_refused",
            Self::NotServed { .. } => "not_served",
            Self::Redirect { .. } => "redirect",
            Self::NotAllowed { .. } => "not_allowed",
            Self::Status { code: 410, .. } => "moving",
            Self::Status { code: 429, .. } => "throttled",
            Self::Status { code: 400..=499, .. } => "client_error",
            Self::BadGateway | Self::Status { code: 500..=599, .. } => "server_error",
            Self::Status { .. } => "other_status",
            Self::Timeout { .. } => "timeout",
            Self::Refused => "refused",
            Self::NotConnected { .. } => "not_connected",
            Self::Reset => "reset",
            Self::BrokenOff { .. } => "broken_off",
            Self::GaveWay => "gave_way",
            Self::Queued { .. } => "queued",
        }
    }

    /// The HTTP status of the answer, where the status is the reason; otherwise 0.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Status { code, .. } | Self::NotAllowed { code } | Self::Redirect { code } => *code,
            Self::BadGateway => 502,
            Self::NotServed { .. } => 404,
            Self::VersionRefused { .. } => 400,
            _ => 0,
        }
    }

    /// True if the service accepted the request: a whole answer with status 200, even without a document. The first
    /// such answer may take two minutes (`SPEC.md` 17.5).
    pub const fn answered(&self) -> bool {
        !matches!(
            self,
            Self::VersionRefused { .. }
                | Self::NotServed { .. }
                | Self::Redirect { .. }
                | Self::NotAllowed { .. }
                | Self::BadGateway
                | Self::Status { .. }
                | Self::Timeout { .. }
                | Self::Refused
                | Self::NotConnected { .. }
                | Self::Reset
                | Self::BrokenOff { .. }
                | Self::GaveWay
                | Self::Queued { .. }
        )
    }

    /// True if the request certainly never reached the service: no connection was made, or none was tried.
    pub const fn never_sent(&self) -> bool {
        matches!(self, Self::Refused | Self::NotConnected { .. } | Self::Queued { .. })
    }

    /// True if the failure is the endpoint's; a request that made room for another is no failure.
    pub const fn is_failure(&self) -> bool {
        !matches!(self, Self::GaveWay | Self::Queued { .. })
    }
}
