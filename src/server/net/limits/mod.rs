//! Who is let in at a listener: how many connections and calls there may be at once, in all and of each, how long they
//! may say nothing, and how fast they may talk. What is asked of whom is not decided here.
//!
//! Whoever connects waits at the door until it has said its first words. There is little room at the door, and where it
//! is full, whoever has the most there loses its oldest: so connections that say nothing are in nobody's way. Inside,
//! what is too much is turned away, and what is too fast waits. Questions that do not end and answers that nobody reads
//! have a room of their own.

mod answers;
mod asked;
mod calls;
mod connection;
mod crowd;
mod frames;
mod guest;
mod http1;
mod incoming;
mod listener;
mod pace;
mod places;
mod room;
mod told;

pub use answers::Maker;
pub use asked::{Asked, count_messages};
pub use calls::{Calls, Turns, grpc_server};
pub use connection::Admitted;
pub use crowd::Crowd;
pub use guest::Guest;
pub use http1::serve_http1;
pub use incoming::{Door, Http1, Http2, Incoming, Porter, by_frames, incoming};
pub use listener::{Listener, Who};
pub use pace::{Pace, Paces};
pub use places::{Place, Places};
pub use room::{Reader, Room};
pub use told::{Told, TurnedAway};
