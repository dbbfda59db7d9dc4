//! Whole clusters on virtual time (`src/sim`): the production machine in a simulated shell, over an abstract log
//! and the simulated cloud, under every kind of fault. Each world is made from a seed, and judged at every step by what
//! it saw happen: posts that left and arrived, hooks that ran, documents that were served, entries that were committed.
//! When nothing goes wrong any more, all has to come to rest, and one more event to be dealt with as it should be.
//!
//! What is assumed: steady clocks run alike; documents of different VMs show the same; an endpoint says nothing wrong
//! twice in a row. What is left out: events that only some VMs see. A replica that approved alone and then loses its disk
//! forgets that, and nobody can tell: such a run is not judged by it.

extern crate allclear_proof as allclear;

mod mistakes;
mod runs;
mod seeds;
