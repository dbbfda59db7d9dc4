//! The begin and the end of a fault in a cluster, and the check for an effect: a fault that met no target proves
//! nothing.

use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::time::Instant;

use super::super::cluster::{Cluster, signal_process};
use super::agenda::{Fault, Stroke};
use super::gather::now;
use super::record::{Moment, Strike};
use super::tricks::Tricks;

/// A fault that is in force.
pub(super) struct InForce {
    pub(super) until: Instant,
    fault: Fault,
    from: Moment,
    /// The replicas that the fault met: running at the time of the kill, and so on.
    met: Vec<usize>,
    /// The value before the fault: the count of disturbed messages, or the length of the replica's log.
    before: usize,
}

impl InForce {
    pub(super) async fn begin(cluster: &mut Cluster, tricks: &Tricks, Stroke { lasts, fault, .. }: Stroke) -> Self {
        let mut met = Vec::new();
        let mut before = cluster.disturbed();
        match &fault {
            Fault::Kill(places) => {
                met.extend(places.iter().copied().filter(|place| cluster.pid(*place).is_some()));
                for place in &met {
                    cluster.kill(*place);
                }
            }
            Fault::Freeze(places) => {
                met.extend(places.iter().copied().filter(|place| cluster.pid(*place).is_some()));
                for place in &met {
                    cluster.freeze(*place);
                }
            }
            Fault::Cut(one, other) => cluster.cut(*one, *other),
            Fault::CutOff(place) => cluster.cut_off(*place),
            Fault::CutOffLoudly(place) => cluster.cut_off_loudly(*place),
            Fault::Mute(place) => cluster.mute(*place),
            Fault::Deafen(place) => cluster.deafen(*place),
            Fault::SlowDown(place, by) => cluster.slow_down(*place, *by),
            Fault::FillDisk(place) => {
                before = cluster.log(*place).len();
                cluster.disks[*place].fill();
            }
            Fault::FailSync(place) => tricks.fail_sync(*place),
            Fault::Clock(place, ahead) => {
                before = cluster.log(*place).len();
                tricks.set_clock(*place, *ahead);
            }
            Fault::Answers(places, order) => {
                for place in places {
                    let mut order = order.clone();
                    order["vm"] = format!("db-{place}").into();
                    cluster.cloud.fault(order).await;
                }
            }
        }
        Self { until: Instant::now() + lasts, fault, from: now(), met, before }
    }

    /// Ends the fault, and returns its record.
    pub(super) async fn end(self, cluster: &mut Cluster, tricks: &Tricks) -> Strike {
        let took_effect = self.had_effect(cluster, tricks).await;
        match &self.fault {
            Fault::Kill(_) => self.met.iter().for_each(|place| cluster.start(*place)),
            // The replica may have been killed meanwhile.
            Fault::Freeze(_) => {
                self.met
                    .iter()
                    .filter_map(|place| cluster.pid(*place))
                    .for_each(|pid| signal_process(pid, Signal::SIGCONT));
            }
            Fault::Cut(..)
            | Fault::CutOff(_)
            | Fault::CutOffLoudly(_)
            | Fault::Mute(_)
            | Fault::Deafen(_)
            | Fault::SlowDown(..) => cluster.heal(),
            Fault::FillDisk(place) => cluster.disks[*place].clear(),
            Fault::FailSync(place) => tricks.spare(*place),
            Fault::Clock(place, _) => tricks.set_clock(*place, 0),
            Fault::Answers(places, _) => {
                for place in places {
                    cluster.cloud.clear_faults_of(&format!("db-{place}")).await;
                }
            }
        }
        Strike { kind: self.fault.kind(), what: self.told(), from: self.from, to: now(), took_effect }
    }

    async fn had_effect(&self, cluster: &Cluster, tricks: &Tricks) -> bool {
        match &self.fault {
            Fault::Kill(_) | Fault::Freeze(_) => !self.met.is_empty(),
            Fault::Cut(..)
            | Fault::CutOff(_)
            | Fault::CutOffLoudly(_)
            | Fault::Mute(_)
            | Fault::Deafen(_)
            | Fault::SlowDown(..) => cluster.disturbed() > self.before,
            Fault::FillDisk(place) => {
                let log = cluster.log(*place);
                let said = log.get(self.before..).unwrap_or_default();
                said.contains("No space left") || said.contains("os error 28")
            }
            Fault::FailSync(place) => tricks.has_failed(*place),
            Fault::Clock(place, ahead) => {
                let log = cluster.log(*place);
                let lines = log.get(self.before..).unwrap_or_default().lines();
                let stamp = |line: &str| -> Option<jiff::Timestamp> {
                    line.strip_prefix("{\"timestamp\":\"")?.split('"').next()?.parse().ok()
                };
                let mut stamps = lines.filter_map(stamp);
                // The replica's log has timestamps of the replica's wall clock.
                let is_off = |stamp: jiff::Timestamp| {
                    let at = stamp.as_millisecond();
                    if *ahead > 0 { at > now() + 1_000 } else { at < self.from - 1_000 }
                };
                stamps.any(is_off)
            }
            Fault::Answers(places, order) => {
                let kind = order["fault"]["kind"].as_str().unwrap();
                for place in places {
                    if cluster.cloud.has_answered_with(kind, &format!("db-{place}"), self.from).await {
                        return true;
                    }
                }
                false
            }
        }
    }

    /// True for a fault of the replica's disk: a replica that loses the disk ends itself.
    pub(super) fn is_of_the_disk(&self, place: usize) -> bool {
        matches!(self.fault, Fault::FillDisk(at) | Fault::FailSync(at) if at == place)
    }

    fn told(&self) -> String {
        let names = |places: &[usize]| places.iter().map(|it| format!("db-{it}")).collect::<Vec<_>>().join(", ");
        let lasted = Duration::from_millis(u64::try_from(now() - self.from).unwrap_or_default());
        let what = match &self.fault {
            Fault::Kill(_) | Fault::Freeze(_) => names(&self.met),
            Fault::Cut(one, other) => names(&[*one, *other]),
            Fault::Answers(places, order) => format!("{} {order}", names(places)),
            Fault::CutOff(place) => format!("db-{place} alone"),
            Fault::CutOffLoudly(place) => format!("db-{place} alone, loudly"),
            Fault::Mute(place) => format!("db-{place} is not heard"),
            Fault::Deafen(place) => format!("db-{place} does not hear"),
            Fault::SlowDown(place, by) => format!("db-{place} by {by:?}"),
            Fault::FillDisk(place) | Fault::FailSync(place) => names(&[*place]),
            Fault::Clock(place, ahead) => format!("db-{place} by {ahead:+} s"),
        };
        format!("{what} for {lasted:?}")
    }
}
