//! Gauges of this replica, and of this replica's view of the cluster.

use std::collections::BTreeSet;

use super::exposition::{Exposition, number};
use crate::net::tls::{Credentials, HandshakeError};
use crate::replica::metrics::seconds;
use crate::replica::view::View;
use allclear_core::model::id::VmName;
use allclear_core::model::isolation::ImdsHealth;
use allclear_core::model::member_state::MEMBER_STATES;
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::{Member, Workload};
use allclear_core::planning_input::PlanningInput;

const ROLES: [&str; 5] = ["leader", "follower", "candidate", "learner", "outside"];

pub(super) fn fill(
    exposition: &Exposition,
    view: &View,
    state: &State,
    input: &PlanningInput,
) -> prometheus::Result<()> {
    exposition.each("allclear_build_info", "The version that runs.", "version", [(env!("CARGO_PKG_VERSION"), 1.0)])?;
    exposition.whether("allclear_ready", "This replica can do its part, as /readyz says.", view.is_ready().is_ok())?;
    status(exposition, view, input)?;
    contacts(exposition, state, input)?;
    channel(exposition, input)?;
    let ahead = view.clock_difference_ms().unwrap_or(0);
    exposition.one(
        "allclear_clock_difference_seconds",
        "By how much this wall clock is ahead of the cluster's time; 0 before it was measured.",
        seconds(Timestamp(ahead)),
    )?;
    exposition.one(
        "allclear_platform_clock_difference_seconds",
        "By how much the cluster's time is at least ahead of the platform's; 0 while they may be the same.",
        seconds(Timestamp(view.platform_difference_ms().unwrap_or(0))),
    )?;
    peers(exposition, view.tls())?;
    workloads(exposition, state, input)?;
    members(exposition, state)
}

#[allow(clippy::cast_precision_loss, reason = "exact up to nine thousand million million")]
fn status(exposition: &Exposition, view: &View, input: &PlanningInput) -> prometheus::Result<()> {
    let status = view.raft_status();
    exposition.whether("allclear_is_leader", "This replica leads and a quorum is behind it.", status.leads())?;
    exposition.whether("allclear_has_quorum", "A leader with a quorum is heard, or is this replica.", input.quorum)?;
    let role = status.role.as_str();
    let roles = ROLES.map(|each| (each, f64::from(u8::from(each == role))));
    exposition.each("allclear_role", "1 for what this replica is in its cluster.", "role", roles)?;
    exposition.one("allclear_raft_term", "The current term.", status.term as f64)?;
    exposition.one(
        "allclear_raft_applied_index",
        "The last position of the log applied here.",
        status.applied as f64,
    )?;
    let bytes = view.bytes_on_disk().unwrap_or(0);
    exposition.one("allclear_log_size_bytes", "What log and snapshots take on the disk.", bytes as f64)
}

fn contacts(exposition: &Exposition, state: &State, input: &PlanningInput) -> prometheus::Result<()> {
    let members = &input.members;
    let voters = members.iter().filter(|name| !input.learners.contains(name)).count();
    exposition.one(
        "allclear_members",
        "Replicas of the cluster, configured ones among them.",
        number(members.len()),
    )?;
    exposition.one("allclear_voters", "Those of them that vote.", number(voters))?;
    let reachable = number(members.len() - input.unreachable_members().len());
    exposition.one("allclear_replicas_reachable", "Members that answer the leader, as known here.", reachable)?;
    let healthy = input.peers.values().filter(|it| it.reachable && it.imds == ImdsHealth::Healthy).count();
    exposition.one(
        "allclear_metadata_channels_healthy",
        "Members that answer and whose metadata endpoint works, as known here.",
        number(healthy),
    )?;
    exposition.one(
        "allclear_replicas_suspect",
        "Replicas that may be approving alone: they have yet to give account.",
        number(state.suspects().count()),
    )?;
    exposition.whether("allclear_is_suspect", "This replica is one of them.", state.is_suspect(&input.me))
}

fn channel(exposition: &Exposition, input: &PlanningInput) -> prometheus::Result<()> {
    let own = input.peers.get(&input.me).map_or(ImdsHealth::Unknown, |contact| contact.imds);
    let states = [ImdsHealth::Unknown, ImdsHealth::Healthy, ImdsHealth::Stalled];
    exposition.each(
        "allclear_metadata_channel",
        "1 for how this VM's metadata endpoint is.",
        "state",
        states.map(|each| (each.as_str(), f64::from(u8::from(each == own)))),
    )
}

/// Gauges of certificates and rejected handshakes; without certificates nothing is rejected, and nothing expires.
fn peers(exposition: &Exposition, tls: Option<&Credentials>) -> prometheus::Result<()> {
    let end = tls.and_then(Credentials::expires_at).map_or(0.0, seconds);
    exposition.one(
        "allclear_certificate_expiry_timestamp_seconds",
        "When the certificate that this replica shows the others ends; 0 without one, or without an end.",
        end,
    )?;
    let none = || HandshakeError::NAMES.into_iter().map(|word| (word, 0)).collect();
    let counts: Vec<_> = tls.map_or_else(none, |tls| tls.refusals().collect());
    exposition.counted(
        "allclear_peer_refusals_total",
        "Connections and calls between replicas that this one refused, or was refused (`by_peer`), by why.",
        "reason",
        counts,
    )
}

/// Gauges of workloads as members of their groups.
fn members(exposition: &Exposition, state: &State) -> prometheus::Result<()> {
    let all = || state.workloads().map(|(vm, workload)| workload.on(vm)).chain(state.slots.keys().cloned());
    let all: BTreeSet<Member> = all().collect();
    let of_state = |word: &str| all.iter().filter(|member| state.member_state(member) == word).count();
    exposition.each(
        "allclear_workload_members",
        "Workloads of all VMs, by whether they serve.",
        "state",
        MEMBER_STATES.map(|word| (word, number(of_state(word)))),
    )?;
    let failing = all.iter().filter(|member| state.failing_return(member).is_some()).count();
    exposition.one("allclear_restores_failing", "Members whose last restore failed.", number(failing))
}

fn workloads(exposition: &Exposition, state: &State, input: &PlanningInput) -> prometheus::Result<()> {
    let is_there = |(vm, workload): &(&VmName, &Workload)| {
        input.reaches(vm) && state.condition(&workload.on(vm)).unwrap_or_default().connected
    };
    let (there, away): (Vec<_>, Vec<_>) = state.workloads().partition(is_there);
    let values = [("connected", number(there.len())), ("away", number(away.len()))];
    exposition.each("allclear_workloads", "Workloads of all VMs, by whether they can be prepared.", "state", values)
}
