//! Commands for members that are being restored.

use std::collections::BTreeMap;

use super::super::hook_label;
use super::{Commands, command};
use crate::clock::rfc3339;

impl Commands<'_> {
    /// For each member whose restore keeps failing or waits for its workload, the command for a member that serves.
    pub(super) fn returning(&mut self) {
        if self.event.stage != "restoring" {
            return;
        }
        for (member, since) in &self.facts.away {
            let does = format!(
                "the restore of {member} waits: the workload has not been connected since {}; start the workload, and \
                 only if it will never connect again, and the member serves already, declare it in service",
                rfc3339(*since)
            );
            self.add_with_reason(does, command("workload restored", &[member]));
        }
        let restores = self.event.hooks.iter().filter(|hook| matches!(hook.phase.as_str(), "restore" | "ready"));
        let ended = restores.filter(|hook| hook.outcome.is_some());
        let last: BTreeMap<_, _> = ended.map(|hook| ((&hook.vm, &hook.workload), hook)).collect();
        for ((vm, workload), hook) in last {
            let member = format!("{vm}/{workload}");
            let is_done = matches!(hook.outcome.as_deref(), Some("done" | "not_applicable"));
            if is_done || self.facts.away.contains_key(&member) {
                continue;
            }
            let why = hook.reason.as_deref().or(hook.outcome.as_deref()).unwrap_or_default();
            let next = self.facts.retries.get(&member).filter(|at| **at > self.now);
            let next = next.map_or_else(String::new, |at| format!(" at {}", rfc3339(*at)));
            let does = format!(
                "the {} hook of {workload} on {vm} has failed: {why}; allclear retries it by itself{next}; repair the \
                 cause, and if the member serves already, declare it in service",
                hook_label(&hook.hook, &hook.phase)
            );
            self.add_with_reason(does, command("workload restored", &[&member]));
        }
    }
}
