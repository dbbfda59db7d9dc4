//! Gauges of this replica, and of this replica's view of the cluster.

use std::collections::BTreeSet;

use super::exposition::{Exposition, number};
use crate::net::tls::{Credentials, HandshakeError};
use crate::replica::metrics::seconds;
use crate::replica::view::{View, state_word};
use allclear_core::known_roles::{PrimaryFault, primary_faults};
use allclear_core::model::id::VmName;
use allclear_core::model::isolation::ImdsHealth;
use allclear_core::model::member_state::MEMBER_STATES;
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::{Member, Workload};
use allclear_core::planning_input::PlanningInput;
use allclear_core::schedule::groups::single_member_groups;

const ROLES: [&str; 5] = ["leader", "follower", "candidate", "learner", "outside"];

pub(super) fn fill(
    exposition: &Exposition,
    view: &View,
    state: &State,
    input: &PlanningInput,
) -> prometheus::Result<()> {
    exposition.each(
        "allclear_build_info",
        "The running version of allclear.",
        "version",
        [(env!("CARGO_PKG_VERSION"), 1.0)],
    )?;
    exposition.whether("allclear_ready", "1 while this replica is ready, as in /readyz.", view.is_ready().is_ok())?;
    status(exposition, view, input)?;
    contacts(exposition, state, input)?;
    channel(exposition, input)?;
    let ahead = view.clock_difference_ms().unwrap_or(0);
    exposition.one(
        "allclear_clock_difference_seconds",
        "The lead of this wall clock over the cluster's time; 0 before the first measurement.",
        seconds(Timestamp(ahead)),
    )?;
    exposition.one(
        "allclear_platform_clock_difference_seconds",
        "The least lead of the cluster's time over Azure's time; 0 while the two times may be equal.",
        seconds(Timestamp(view.platform_difference_ms().unwrap_or(0))),
    )?;
    peers(exposition, view.tls())?;
    workloads(exposition, state, input)?;
    exposition.one(
        "allclear_checks_failed",
        "Workloads of this VM whose `check` hook found a fault, the last time it ran.",
        number(view.checks_failed()),
    )?;
    members(exposition, state, input)?;
    exposition.one(
        "allclear_half_removed",
        "Replicas that an operator removed, and that the configuration of this replica lists or that still run.",
        number(view.half_removed()),
    )?;
    exposition.one(
        "allclear_single_member_groups",
        "Groups with a single member in the whole cluster: no other member can take over.",
        number(single_member_groups(state, &input.members).len()),
    )?;
    primaries(exposition, state, input)
}

#[allow(clippy::cast_precision_loss, reason = "exact up to nine thousand million million")]
fn status(exposition: &Exposition, view: &View, input: &PlanningInput) -> prometheus::Result<()> {
    let status = view.raft_status();
    exposition.whether("allclear_is_leader", "1 while this replica is the leader with a quorum.", status.leads())?;
    exposition.whether(
        "allclear_has_quorum",
        "1 while this replica follows, or is, a leader with a quorum.",
        input.quorum,
    )?;
    let role = status.role.as_str();
    let roles = ROLES.map(|each| (each, f64::from(u8::from(each == role))));
    exposition.each("allclear_role", "1 for the role of this replica in its cluster.", "role", roles)?;
    exposition.one("allclear_raft_term", "The current Raft term.", status.term as f64)?;
    exposition.one(
        "allclear_raft_applied_index",
        "The last position of the log that this replica has applied.",
        status.applied as f64,
    )?;
    let bytes = view.bytes_on_disk().unwrap_or(0);
    exposition.one("allclear_log_size_bytes", "The size of log and snapshots on the disk.", bytes as f64)
}

fn contacts(exposition: &Exposition, state: &State, input: &PlanningInput) -> prometheus::Result<()> {
    let members = &input.members;
    let voters = members.iter().filter(|name| !input.learners.contains(name)).count();
    exposition.one(
        "allclear_members",
        "Replicas of the cluster, configured replicas included.",
        number(members.len()),
    )?;
    exposition.one("allclear_voters", "Replicas of the cluster with a vote.", number(voters))?;
    let reachable = number(members.len() - input.unreachable_members().len());
    exposition.one(
        "allclear_replicas_reachable",
        "Members that answer the leader, as known to this replica.",
        reachable,
    )?;
    let healthy = input.peers.values().filter(|it| it.reachable && it.imds == ImdsHealth::Healthy).count();
    exposition.one(
        "allclear_metadata_channels_healthy",
        "Members that answer and have a working metadata endpoint, as known to this replica.",
        number(healthy),
    )?;
    exposition.one(
        "allclear_replicas_suspect",
        "Suspect replicas: their isolated approvals may be missing in the log.",
        number(state.suspects().count()),
    )?;
    exposition.whether("allclear_is_suspect", "1 while this replica is suspect.", state.is_suspect(&input.me))
}

fn channel(exposition: &Exposition, input: &PlanningInput) -> prometheus::Result<()> {
    let own = input.peers.get(&input.me).map_or(ImdsHealth::Unknown, |contact| contact.imds);
    let states = [ImdsHealth::Unknown, ImdsHealth::Healthy, ImdsHealth::Stalled];
    exposition.each(
        "allclear_metadata_channel",
        "1 for the state of this VM's metadata endpoint.",
        "state",
        states.map(|each| (each.as_str(), f64::from(u8::from(each == own)))),
    )
}

/// Gauges of certificates and rejected handshakes; without certificates nothing is rejected, and nothing expires.
fn peers(exposition: &Exposition, tls: Option<&Credentials>) -> prometheus::Result<()> {
    let end = tls.and_then(Credentials::expires_at).map_or(0.0, seconds);
    exposition.one(
        "allclear_certificate_expiry_timestamp_seconds",
        "The end of the certificate that this replica presents to other replicas; 0 without a certificate, or without \
         an end.",
        end,
    )?;
    let none = || HandshakeError::NAMES.into_iter().map(|word| (word, 0)).collect();
    let counts: Vec<_> = tls.map_or_else(none, |tls| tls.refusals().collect());
    exposition.counted(
        "allclear_peer_refusals_total",
        "Connections and calls between replicas that this replica refused, or the peer refused (`by_peer`), by reason.",
        "reason",
        counts,
    )
}

/// Gauges of workloads as members of their groups.
fn members(exposition: &Exposition, state: &State, input: &PlanningInput) -> prometheus::Result<()> {
    let all = || state.workloads().map(|(vm, workload)| workload.on(vm)).chain(state.slots.keys().cloned());
    let all: BTreeSet<Member> = all().collect();
    let of_state = |word: &str| all.iter().filter(|member| state_word(state, input, member) == word).count();
    exposition.each(
        "allclear_workload_members",
        "Workloads of all VMs, by state of service.",
        "state",
        MEMBER_STATES.map(|word| (word, number(of_state(word)))),
    )?;
    let failing = all.iter().filter(|member| state.failing_return(member).is_some()).count();
    exposition.one("allclear_restores_failing", "Members whose last restore failed.", number(failing))
}

/// Gauges of groups without exactly one primary. The status names the groups.
fn primaries(exposition: &Exposition, state: &State, input: &PlanningInput) -> prometheus::Result<()> {
    let faults = primary_faults(state, input);
    let several = faults.iter().filter(|(_, fault)| matches!(fault, PrimaryFault::Several(_))).count();
    exposition.each(
        "allclear_group_primary_faults",
        "Groups without a known primary (`absent`) or with several (`several`), by the reports of their members.",
        "state",
        [("absent", number(faults.len() - several)), ("several", number(several))],
    )
}

fn workloads(exposition: &Exposition, state: &State, input: &PlanningInput) -> prometheus::Result<()> {
    let is_there = |(vm, workload): &(&VmName, &Workload)| {
        input.reaches(vm) && state.condition(&workload.on(vm)).unwrap_or_default().connected
    };
    let (there, away): (Vec<_>, Vec<_>) = state.workloads().partition(is_there);
    let values = [("connected", number(there.len())), ("away", number(away.len()))];
    exposition.each(
        "allclear_workloads",
        "Workloads of all VMs, by connection: only connected workloads can be prepared.",
        "state",
        values,
    )
}
