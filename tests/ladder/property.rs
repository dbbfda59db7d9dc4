//! What must hold always, and what must be possible.

use stateright::Property;

use crate::cluster::Cluster;
use crate::world::{Breach, Shown, World};

const S2: &str = "S2 a quorum posts what it claimed, a lone secondary each event once";
const S4: &str = "S4 no event approved while another one of the group takes its member, until all is put back";
const S5: &str = "S5 alone, only user-initiated events, none that is held, none with a hook that may run";

pub(crate) const KEPT: [&str; 3] = [S2, S4, S5];

pub(crate) const ALONE: &str = "approved by a lone secondary";
pub(crate) const QUORUM: &str = "approved by a quorum";
pub(crate) const TWICE: &str = "one event posted by a lone secondary and claimed by a quorum";
pub(crate) const AFTERWARDS: &str = "approved alone, accounted for, all are cleared, and the quorum claims the next";
pub(crate) const MISSED: &str = "approved alone though it is held, by one that did not acknowledge the hold";

pub(crate) fn name(breach: Breach) -> &'static str {
    match breach {
        Breach::S2 => S2,
        Breach::S4 => S4,
        Breach::S5 => S5,
    }
}

pub(crate) fn all() -> Vec<Property<Cluster>> {
    vec![
        Property::always(S2, |_, world: &World| world.breach != Some(Breach::S2)),
        Property::always(S4, |_, world: &World| world.breach != Some(Breach::S4)),
        Property::always(S5, |_, world: &World| world.breach != Some(Breach::S5)),
        Property::sometimes(ALONE, |cluster: &Cluster, world: &World| {
            any(cluster, |event| is_approved(world, event) && was_sent_alone(world, event) && !is_claimed(world, event))
        }),
        Property::sometimes(QUORUM, |cluster: &Cluster, world: &World| {
            any(cluster, |event| is_approved(world, event) && !was_sent_alone(world, event))
        }),
        Property::sometimes(TWICE, |cluster: &Cluster, world: &World| {
            any(cluster, |event| is_claimed(world, event) && was_sent_alone(world, event))
        }),
        Property::sometimes(AFTERWARDS, |cluster: &Cluster, world: &World| {
            let is_next = |event: usize| is_claimed(world, event) && world.log.is_open(event);
            let is_accounted = |event: usize| world.log.events[event].is_journaled && was_sent_alone(world, event);
            let is_healed = (0..cluster.replicas).all(|replica| world.has_contact(replica));
            is_healed
                && world.log.suspects.is_empty()
                && any(cluster, is_accounted)
                && any(cluster, is_next)
                && !any(cluster, |event| is_accounted(event) && is_next(event))
        }),
        Property::sometimes(MISSED, |cluster: &Cluster, world: &World| {
            any(cluster, |event| {
                let chose = |replica: &usize| world.nodes[*replica].intent.map(usize::from) == Some(event);
                let is_unheard = |replica: usize| !world.view(replica).events[event].is_held;
                world.log.events[event].is_held && (0..cluster.replicas).filter(chose).any(is_unheard)
            })
        }),
    ]
}

fn any(cluster: &Cluster, is_so: impl Fn(usize) -> bool) -> bool {
    (0..cluster.events.len()).any(is_so)
}

fn is_approved(world: &World, event: usize) -> bool {
    world.cloud[event].shown == Shown::Approved
}

fn is_claimed(world: &World, event: usize) -> bool {
    world.log.events[event].approver.is_some()
}

fn was_sent_alone(world: &World, event: usize) -> bool {
    world.nodes.iter().any(|node| node.sent.contains(event))
}
