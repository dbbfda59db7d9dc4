//! Whole clusters on virtual time (`src/sim`): the production core in a simulated shell, over an abstract log and the
//! simulated cloud, under every kind of fault. Each world is made from a seed, and judged at every step by the observed
//! facts: posts sent and arrived, hooks run, documents served, entries committed. When nothing goes wrong any more, the
//! cluster must come to rest, and one more event must be handled correctly.
//!
//! Assumptions: monotonic clocks run alike; documents of different VMs show equal content; an endpoint never returns a
//! wrong answer twice in a row. Left out: events shown to some VMs only. A replica which approved in isolation and then
//! loses its disk forgets the approval undetectably: the oracle does not judge such a run by this approval.

extern crate allclear_proof as allclear;

mod mistakes;
mod runs;
mod seeds;
