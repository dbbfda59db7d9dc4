//! Warnings about the asked replica itself, and about its VM.

use std::time::Duration;

use crate::clock::rfc3339;
use crate::cluster::NodeFacts;
use crate::latest_answers::{Fault, LatestFaults};
use crate::metrics::Excess;
use crate::net::tls::Credentials;
use allclear_core::model::id::{VmName, WorkloadName};
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::{Member, Role, Workload};
use allclear_core::schedule::checks::is_undisturbed;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// The begin of the warning while the asked replica receives no documents.
pub const NO_DOCUMENTS: &str = "this replica receives no documents";
/// A certificate with less time left causes a warning.
const RENEWED_BEFORE: Duration = Duration::from_hours(14 * 24);

/// The warning when Azure calls this VM by another name.
pub(in crate::view) fn other_vm_name(own: &VmName, told: Option<(Timestamp, VmName)>) -> Option<shown::Warning> {
    let (since, told) = told?;
    let text = format!(
        "replica.name is {own}, but Azure calls this VM {told}: events of {told} count as events outside of this \
         cluster, so allclear does not prepare this VM; set replica.name to {told}, also in cluster.replicas on every \
         replica, and restart"
    );
    Some(shown::Warning { since: rfc3339(since), text, event: String::new() })
}

/// The warning while this replica receives no documents.
pub(in crate::view) fn no_documents(failure: Option<(Timestamp, String)>) -> Option<shown::Warning> {
    let (since, why) = failure?;
    let text = format!("{NO_DOCUMENTS}: {why}");
    Some(shown::Warning { since: rfc3339(since), text, event: String::new() })
}

/// Warnings of this VM's workloads whose `check` hook found a fault.
pub(in crate::view) fn failed_checks(node: &NodeFacts, checks: &LatestFaults) -> impl Iterator<Item = shown::Warning> {
    let (vm, doctor) = (&node.name, &node.doctor);
    checks.all().into_iter().filter_map(move |(workload, fault)| {
        let fault = fault?;
        let text = format!(
            "the check of {workload} on {vm} found a fault, so hooks of the next event may fail: {}. Repair the fault; \
             on {vm}, `{doctor}` shows all faults. allclear repeats the check every 10 minutes, except while an event of \
             the group is under way",
            fault.why
        );
        Some(shown::Warning { since: rfc3339(fault.since), text, event: String::new() })
    })
}

/// Warnings of this VM's configured workloads that do not tell their role. A session in place of a workload tells its own
/// role, and during an event a workload may be stopped.
pub(in crate::view) fn unknown_roles(state: &State, vm: &VmName, unknown: &LatestFaults) -> Vec<shown::Warning> {
    let is_unexpected = |workload: &WorkloadName| {
        let member = Member { vm: vm.clone(), workload: workload.clone() };
        let counts = state.workload(&member).is_some_and(|workload| !workload.is_session());
        counts && is_undisturbed(state, vm, &member)
    };
    let warning = |(workload, fault): (WorkloadName, Option<Fault>)| {
        let fault = fault.filter(|_| is_unexpected(&workload))?;
        let text = format!(
            "the role of {workload} on {vm} is not known, so {workload} counts as a possible primary: {}. Repair the \
             `role` of the workload, or its server",
            fault.why
        );
        Some(shown::Warning { since: rfc3339(fault.since), text, event: String::new() })
    };
    unknown.all().into_iter().filter_map(warning).collect()
}

/// Warnings of session workloads whose registration this replica refuses.
pub(in crate::view) fn refused_registrations(
    vm: &VmName,
    refused: Vec<(WorkloadName, Fault)>,
) -> impl Iterator<Item = shown::Warning> {
    let warning = move |(workload, fault): (WorkloadName, Fault)| {
        let text = format!(
            "{vm} refuses the registration of the workload {workload}: {}. The workload takes part as registered before, \
             or not at all. Correct its program, or the configuration of the replica",
            fault.why
        );
        shown::Warning { since: rfc3339(fault.since), text, event: String::new() }
    };
    refused.into_iter().map(warning)
}

/// Warnings of members that are not ready without an event. Only the replica of the VM knows the reason.
pub(in crate::view) fn not_ready(state: &State, me: &VmName, unready: &LatestFaults) -> Vec<shown::Warning> {
    let reasons = unready.all();
    let warning = |(vm, workload): (&VmName, &Workload)| {
        let member = workload.on(vm);
        let since = state.not_serving_since(&member).filter(|_| state.member_state(&member) == "not_ready")?;
        let own = reasons.get(&workload.name).cloned().flatten().filter(|_| vm == me);
        let why = match own {
            Some(fault) => fault.why,
            None if workload.is_session() => "it is not connected".into(),
            None => format!("`allclear status` on {vm} shows the reason"),
        };
        let group = workload.group.as_ref().map_or_else(String::new, |group| {
            format!(". Until it is ready it counts as out of service in {group}, and other members of the group wait")
        });
        // A replica that waits for its primary has no fault of its own.
        let primary = if state.role(&member) == Role::Replica { ", or the primary that it follows" } else { "" };
        let text =
            format!("{member} is not ready: {why}{group}. Repair the server of {} on {vm}{primary}", workload.name);
        Some(shown::Warning { since: rfc3339(since), text, event: String::new() })
    };
    state.workloads().filter_map(warning).collect()
}

/// Warnings when this replica's metadata endpoint reports more than this replica keeps.
pub(in crate::view) fn excess(excess: &Excess) -> impl Iterator<Item = shown::Warning> {
    let [left_out, waited] = excess.since();
    let look = "check whether another program answers at the endpoint's address, and find the source of so many or \
                such large events";
    let left_out = left_out.map(|since| {
        let what = "the metadata endpoint of this VM lists more events than allclear keeps: allclear neither prepares \
                    nor approves events that are missing in the list below, and Azure starts these events when their \
                    notice ends";
        (since, format!("{what}; {look}"))
    });
    let waited = waited.map(|since| {
        let what = "the metadata endpoint of this VM changes its document so often that this replica reports the \
                    changes late";
        (since, format!("{what}, events of this cluster first; {look}"))
    });
    let warning = |(since, text)| shown::Warning { since: rfc3339(since), text, event: String::new() };
    left_out.into_iter().chain(waited).map(warning)
}

/// Warnings about this replica's certificate, by this replica's wall clock.
pub(in crate::view) fn of_certificate(credentials: &Credentials, wall: Timestamp) -> Vec<shown::Warning> {
    let warning = |since: Timestamp, text: String| shown::Warning { since: rfc3339(since), text, event: String::new() };
    let unfit = credentials.unfit().map(|(since, why)| {
        warning(
            since,
            format!("this replica uses its previous certificates, because the new certificates are not usable: {why}"),
        )
    });
    let soon = credentials.expires_at().filter(|end| end.minus(RENEWED_BEFORE) <= wall).map(|end| {
        let verb = if end <= wall { "expired" } else { "expires" };
        let text = format!(
            "the certificate of this replica {verb} at {}, and the other replicas refuse the certificate from then \
             on: renew the certificate (with `allclear certs issue` if `allclear certs` made the authority)",
            rfc3339(end)
        );
        warning(end.minus(RENEWED_BEFORE), text)
    });
    unfit.into_iter().chain(soon).collect()
}
