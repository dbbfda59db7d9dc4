//! Replicas are alike but for who leads: of all worlds that differ only by their numbers, one stands for all.

use crate::set::Set;
use crate::world::{Log, Node, World};

/// The leader becomes the first; of the orders of the others the least is taken.
pub(crate) fn representative(world: &World) -> World {
    let count = world.nodes.len();
    let others: Vec<usize> = (0..count).filter(|replica| *replica != world.leader).collect();
    let order =
        |others: &[usize]| -> Vec<usize> { std::iter::once(world.leader).chain(others.iter().copied()).collect() };
    let one = renumbered(world, &order(&others));
    if count < 3 {
        return one;
    }
    let reversed: Vec<usize> = others.into_iter().rev().collect();
    one.min(renumbered(world, &order(&reversed)))
}

/// `order` says who takes each place.
fn renumbered(world: &World, order: &[usize]) -> World {
    let mut places = [0; 8];
    for (place, replica) in order.iter().enumerate() {
        places[*replica] = place;
    }
    let rename = |set: Set| -> Set { set.iter().map(|replica| places[replica]).collect() };
    let in_log = |mut log: Log| -> Log {
        for known in &mut log.events {
            known.approver = known.approver.and_then(|it| u8::try_from(places[usize::from(it)]).ok());
        }
        (log.voters, log.suspects) = (rename(log.voters), rename(log.suspects));
        log
    };
    let node = |replica: &usize| -> Node {
        let node = world.nodes[*replica];
        Node { stale: node.stale.map(in_log), ..node }
    };
    let mut next = World { nodes: order.iter().map(node).collect(), ..world.clone() };
    next.log = in_log(next.log);
    next.leader = places[next.leader];
    for sight in &mut next.cloud {
        sight.seen_by = rename(sight.seen_by);
    }
    if let Some(appended) = &mut next.appended {
        appended.by = places[appended.by];
    }
    next
}
