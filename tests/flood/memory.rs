//! Memory use of a replica.

use super::cluster::Cluster;

/// Peak memory, in bytes.
pub(crate) fn peak(cluster: &Cluster, place: usize) -> u64 {
    of(cluster, place, "VmHWM:")
}

pub(crate) fn resident(cluster: &Cluster, place: usize) -> u64 {
    of(cluster, place, "VmRSS:")
}

fn of(cluster: &Cluster, place: usize, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", cluster.pid(place).unwrap())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

pub(crate) fn mib(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes >> 10).unwrap()) / 1024.0
}
