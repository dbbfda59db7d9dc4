//! Sets the cluster's time as the leader, from the clocks in status reports.

use crate::replica::cluster::ClusterHandle;
use crate::replica::input_source::InputSource;
use crate::replica::poller::ImdsPoller;
use allclear_core::cluster_time::{ClockReading, Trust};
use allclear_core::model::id::VmName;
use allclear_core::platform_time::Interval;
use allclear_wire::pb::allclear::cluster::v1 as wire;

/// Sets the cluster's time from the voters' readings, if the readings allow a decision.
pub(super) fn set_the_time(inputs: &InputSource, observer: &ImdsPoller) {
    let cluster = &inputs.cluster;
    cluster.time.lead();
    let differences = &inputs.peers.differences;
    let known = differences.readings();
    let voters: Vec<VmName> = cluster.consensus.members().voters.iter().map(|name| VmName::new(name)).collect();
    let others = voters.iter().filter(|name| **name != cluster.node.name).filter_map(|name| known.get(name).copied());
    let readings: Vec<ClockReading> = core::iter::once(own_reading(cluster, observer)).chain(others).collect();
    if cluster.time.agree(&readings, voters.len()) {
        tell_of_a_step(inputs);
    }
    let own = own_reading(cluster, observer);
    differences.record_reading(&cluster.node.name, own, cluster.time.trust());
    differences.measured(own.platform, cluster.time.trust(), cluster.time.now());
}

pub(super) fn own_reading(cluster: &ClusterHandle, observer: &ImdsPoller) -> ClockReading {
    let time = cluster.time.now();
    observer.reading(Some(cluster.time.wall().0.saturating_sub(time.0)), time)
}

/// Discards differences measured against the previous time, and wakes tasks that wait for a time.
pub(super) fn tell_of_a_step(inputs: &InputSource) {
    inputs.peers.differences.forget();
    inputs.peers.notify_change();
    if inputs.cluster.time.trust() == Trust::Guessed {
        tracing::warn!(
            "the wall clocks of the voters differ, and no metadata endpoint returns the time: the cluster uses the \
             clock of this replica, and treats ends of notices as unknown; synchronise the clocks"
        );
    }
}

/// The clock reading in a status report; if `is_of_this_time` is false, the reading was not measured against the
/// current time.
pub(super) fn reading_of(beat: &wire::BeatRequest, is_of_this_time: bool) -> ClockReading {
    let platform = beat.platform.and_then(|it| Interval::new(it.least_ms, it.greatest_ms));
    ClockReading {
        wall: beat.clock_difference_ms.filter(|_| is_of_this_time),
        platform: platform.filter(|_| is_of_this_time),
        is_asking: beat.asking,
    }
}

pub(super) fn wire_platform(platform: Interval) -> wire::PlatformTime {
    wire::PlatformTime { least_ms: platform.least, greatest_ms: platform.greatest }
}
