//! Who is let in at a listener: how many connections and calls there may be at once, in all and of each, how long they
//! may say nothing, and how fast they may talk. What is asked of whom is not decided here.
//!
//! Whoever connects waits at the door until it has said its first words. There is little room at the door, and where it
//! is full, whoever has the most there loses its oldest: so connections that say nothing are in nobody's way. Inside,
//! what is too much is turned away, and what is too fast waits. Questions that do not end and answers that nobody reads
//! have a room of their own.

mod accepted;
mod answer_budget;
mod answers;
mod call_limits;
mod connection;
mod connection_limit;
mod evicting_limit;
mod frames;
mod handshake;
mod http1;
mod listener;
mod log_limit;
mod message_budget;
mod rate_limit;

pub use accepted::Accepted;
pub use answer_budget::{AnswerBudget, PeerReader};
pub use answers::Maker;
pub use call_limits::{CallLimits, CallRate, grpc_server};
pub use connection::BoundedConnection;
pub use connection_limit::{ConnectionLimit, ConnectionPermit};
pub use evicting_limit::EvictingLimit;
pub use handshake::{Acceptor, HandshakeGate, Http1, Http2, Incoming, by_frames, incoming};
pub use http1::serve_http1;
pub use listener::{ClientKey, Listener};
pub use log_limit::{LogLimiter, RejectionLog};
pub use message_budget::{MessageBudget, count_messages};
pub use rate_limit::{RateLimiter, RateLimiters};
