//! Limits of a listener: connections and calls at a time, in total and for each client, idle time, and rate.
//!
//! A connection waits at the handshake gate until its first bytes arrive. The gate has few places. When the gate is
//! full, the client with most waiting connections loses its oldest, so silent connections block no other client. After
//! the gate, a connection over the limit is rejected, and a connection that is too fast waits. Requests without an end
//! and unread answers have budgets of their own.

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
