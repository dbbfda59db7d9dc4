//! The warnings of the status.

use std::time::Duration;

use super::{View, warning};
use crate::clock;
use crate::clock_skew::WARN_ABOVE;
use allclear_core::cluster_time::Trust;
use allclear_core::planning_input::PlanningInput;
use allclear_wire::pb::allclear::operator::v1 as shown;

impl View {
    /// Warnings from the log, and from the own observations of this replica. A replica without a quorum does not warn of
    /// second approvers, because unknown approvals may explain the event.
    pub(super) fn warnings(&self, input: &PlanningInput) -> Vec<shown::Warning> {
        let (state, now) = (self.cluster.state(), input.now);
        let knows = self.cluster.reconciliation_known(&state);
        let mut warnings = if knows { warning::second_approvals(&state, now) } else { Vec::new() };
        warnings.drain(..warnings.len().saturating_sub(warning::MOST));
        warnings.extend(warning::failed_restores(&state));
        warnings.extend(warning::not_ready(&state, &self.cluster.node.name, &self.unready));
        warnings.extend(warning::shared_hosts(&state));
        warnings.extend(warning::overdrafts(&state, now));
        warnings.extend(warning::events_beyond(&state));
        warnings.extend(warning::implausible_notices(&state));
        warnings.extend(warning::other_vm_name(&self.cluster.node.name, self.metrics.vm_name.differs()));
        warnings.extend(warning::no_documents(self.metrics.metadata_failure.known()));
        warnings.extend(warning::failed_checks(&self.cluster.node, &self.checks));
        warnings
            .extend(warning::refused_registrations(&self.cluster.node.name, self.metrics.refused_registrations.all()));
        warnings.extend(warning::unknown_roles(&state, &self.cluster.node.name, &self.unknown_roles));
        warnings.extend(warning::excess(&self.metrics.excess));
        warnings.extend(warning::platform_time_differs(&self.inputs.peers.differences));
        warnings.extend(warning::time_in_doubt(&self.inputs.peers.differences));
        warnings.extend(self.time_from_before_the_start());
        warnings.extend(warning::policies_differ(&self.inputs.peers.policies));
        let half_removed =
            warning::half_removed(&self.cluster).into_iter().map(|left| left.text(&self.cluster.node.name));
        let undone = half_removed.chain(warning::single_members(&state, &input.members)).collect();
        warnings.extend(self.first_shown.warnings(undone, now));
        warnings.extend(self.tls().into_iter().flat_map(|tls| warning::of_certificate(tls, clock::now())));
        warnings
    }

    /// The number of replicas that an operator removed, and that are still configured here or still run.
    pub fn half_removed(&self) -> usize {
        warning::half_removed(&self.cluster).len()
    }

    fn time_from_before_the_start(&self) -> Option<shown::Warning> {
        Some(warning::time_from_before_the_start(self.cluster.state().now, self.time_behind()?))
    }

    /// By how much the times of this replica are behind the VM's clock: since its start the replica has no time from the
    /// cluster.
    pub(super) fn time_behind(&self) -> Option<Duration> {
        let time = &self.cluster.time;
        let behind = Duration::from_millis(u64::try_from(time.wall_is_ahead_by()).unwrap_or_default());
        let is_old = time.trust() == Trust::Unknown && !self.cluster.consensus.status_now().has_leader();
        (is_old && behind > WARN_ABOVE).then_some(behind)
    }
}
