//! Whether the other replicas answer at their addresses, and the difference of their clocks.

use std::time::Duration;

use futures_util::future::join_all;

use super::finding::Finding;
use allclear_core::model::id::VmName;
use allclear_server::config::{Config, PeerAddress};
use allclear_server::grpc::{ProbeResult, Prober, visit};
use allclear_server::replica::clock_skew::WARN_ABOVE;

const PEER: &str = "peer";
const CLOCK: &str = "clock";
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// While this replica does not run, other replicas may not be started either. Where certificates are required but
/// missing, no replica is contacted.
pub(super) async fn findings(
    config: &Config,
    visitor: Option<&Prober<'_>>,
    name: &str,
    is_running: bool,
) -> Vec<Finding> {
    let others = config.cluster.replicas.iter().filter(|peer| peer.name != VmName::new(name));
    let Some(visitor) = visitor else {
        return vec![Finding::warn(
            PEER,
            "no replica can be queried without a certificate",
            "correct the certificate first",
        )];
    };
    let found = join_all(others.map(|peer| of(config, visitor, peer, is_running))).await;
    if found.is_empty() {
        return vec![Finding::ok(PEER, "this is a cluster of one: there are no other replicas")];
    }
    let clocks: Vec<_> = found.iter().filter_map(|(_, clock)| clock.clone()).collect();
    found.into_iter().flat_map(|(findings, _)| findings).chain(odd_clock(&clocks)).collect()
}

/// The findings about a peer, and the milliseconds by which its clock is ahead of this one.
type Peer = (Vec<Finding>, Option<(String, i64)>);

async fn of(config: &Config, visitor: &Prober<'_>, peer: &PeerAddress, is_running: bool) -> Peer {
    let PeerAddress { name: other, address } = peer;
    let visited = visit(visitor, other.as_str(), address, ANSWER_WITHIN).await;
    let ahead = visited.as_ref().ok().and_then(|met| met.clock).map(|(ahead, _)| (other.to_string(), ahead));
    let findings = match visited {
        Ok(met) if VmName::new(&met.replica) != *other => {
            let what = format!("{} answers at {address}, where cluster.replicas has {other}", met.replica);
            vec![Finding::fail(PEER, what, "correct the address, on every replica")]
        }
        Ok(met) => vec![same_list(config, peer, &met), clock(peer, &met)],
        Err(why) if why.contains("refused") && !is_running => {
            let what = format!("nothing listens for {other} at {address}, and this replica does not run either");
            let advice = format!("start both replicas; if {other} runs already, check cluster.listen of {other}");
            vec![Finding::warn(PEER, what, advice)]
        }
        Err(why) if why.contains("does not resolve") => {
            let what = format!("{other} is not found at {address}: {why}");
            let advice = "make the name known (DNS, /etc/hosts), or write the address in cluster.replicas";
            vec![Finding::fail(PEER, what, advice)]
        }
        Err(why) => {
            let what = format!("{other} does not answer as a replica of {} at {address}: {why}", config.cluster.name);
            let advice = "start the other replica; if the other replica runs already, check its cluster.listen, \
                          cluster.name and [cluster.tls], and the firewall";
            vec![Finding::fail(PEER, what, advice)]
        }
    };
    (findings, ahead)
}

/// The clock of this VM, if it differs from the clocks of at least two others that agree with each other.
fn odd_clock(others: &[(String, i64)]) -> Option<Finding> {
    let ahead = || others.iter().map(|(_, ahead)| *ahead);
    let (least, most) = (ahead().min()?, ahead().max()?);
    let is_apart = |ahead: i64| Duration::from_millis(ahead.unsigned_abs()) > WARN_ABOVE;
    if others.len() < 2 || is_apart(most - least) || !ahead().all(is_apart) {
        return None;
    }
    let names = others.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" and ");
    let which = if least < 0 { "ahead" } else { "behind" };
    let what = format!("the clock of this VM is the odd one: {names} agree with each other, and this clock is {which}");
    Some(Finding::warn(CLOCK, what, "set the clock of this VM right: `timedatectl`, `chronyc tracking`"))
}

/// A cluster forms only of replicas with equal lists.
fn same_list(config: &Config, peer: &PeerAddress, met: &ProbeResult) -> Finding {
    let PeerAddress { name, address } = peer;
    let ours: Vec<String> = config.cluster.replicas.iter().map(|peer| peer.name.to_string()).collect();
    let is_same = ours.len() == met.replicas.len()
        && ours.iter().zip(&met.replicas).all(|(one, other)| one.eq_ignore_ascii_case(other));
    if is_same {
        return Finding::ok(PEER, format!("{name} answers at {address}, in cluster {}", config.cluster.name));
    }
    let (theirs, ours) = (met.replicas.join(", "), ours.join(", "));
    let what = format!("{name} answers at {address}, and lists the replicas {theirs}; this replica lists {ours}");
    Finding::warn(PEER, what, "make cluster.replicas the same, in the same order, before the cluster is first formed")
}

fn clock(peer: &PeerAddress, met: &ProbeResult) -> Finding {
    let name = &peer.name;
    let Some((ahead, round_trip)) = met.clock else {
        let what = format!("the clock of {name} is not known: {name} is older, or does not know this replica yet");
        return Finding::warn(CLOCK, what, "when this replica is a member, compare the clocks with `allclear status`");
    };
    let apart = Duration::from_millis(ahead.unsigned_abs());
    let which = if ahead < 0 { "behind" } else { "ahead of" };
    let what = format!("the clock of {name} is {apart:?} {which} this clock, give or take {:?}", round_trip / 2);
    if apart > WARN_ABOVE {
        Finding::warn(CLOCK, what, "synchronise the clocks: `timedatectl`, `chronyc tracking`")
    } else {
        Finding::ok(CLOCK, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_odd_clock_is_found_where_the_others_agree() {
        let odd = |ahead: &[i64]| {
            let others: Vec<_> = (1..).zip(ahead).map(|(at, ahead)| (format!("db-{at}"), *ahead)).collect();
            odd_clock(&others).map(|finding| finding.what)
        };
        let told = odd(&[-90_000, -90_040]).unwrap();
        assert_eq!(
            told,
            "the clock of this VM is the odd one: db-1 and db-2 agree with each other, and this clock is ahead"
        );
        for others in [&[-90_000][..], &[-90_000, 10], &[-90_000, 90_000], &[3, -20], &[]] {
            assert_eq!(odd(others), None, "{others:?}");
        }
    }
}
