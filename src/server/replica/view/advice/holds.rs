//! Commands that keep an event from being approved, and its hooks from beginning.

use super::super::primaries;
use super::{Commands, command, unmoved_primaries};
use crate::clock::{from_rfc3339, rfc3339};
use allclear_core::model::time::Timestamp;

/// Duration of an offered hold of an event whose notice has no known end.
const HELD_FOR: &str = "2h";

impl Commands<'_> {
    /// Commands that keep the event from being approved.
    pub(super) fn holds(&mut self) {
        // A hold has no effect on an event that is only observed or not listed, nor after the end of the notice.
        if self.has("observing") || self.has("not_listed") || self.is_notice_over() {
            return;
        }
        // A second hold or pause replaces the first, and could end earlier.
        if self.event.hold.is_some() {
            return;
        }
        let ends = self.notice_ends();
        let (span, start) = match ends.map(rfc3339) {
            Some(at) => ("until the notice ends", format!("; Azure may still start the event at {at}")),
            None => ("for two hours from now", String::new()),
        };
        // Without a document that counts there is no last call.
        let has_last_call = self.event.treatment.as_deref() == Some("prepare") && self.event.status.is_some();
        let (hooks, hooks_of_all) = if has_last_call {
            (
                "; hooks that are left still run shortly before the notice ends, unless you add --no-hooks",
                "; hooks that are left still run shortly before the notice of an event ends",
            )
        } else {
            ("", "")
        };
        let does = format!("hold the event: no approval {span}; the members stay in service, or return{hooks}{start}");
        self.add_with_reason(does, self.hold(""));
        if !self.has("paused") {
            let does = format!("pause all approvals: no approval of any event {span}{hooks_of_all}");
            self.add_with_reason(does, Some(format!("allclear pause --until {}", self.held_until())));
        }
    }

    /// In a cluster without documents no hook begins, so a person has to move the primary, and to keep allclear's own
    /// failover from beginning meanwhile.
    pub(super) fn move_by_hand(&mut self) {
        let is_open = self.facts.is_undecided && self.event.drill.is_none() && !self.has("no_quorum");
        if !is_open || !self.has("no_healthy_channel") {
            return;
        }
        let staying = if self.event.status.is_none() { primaries(self.event) } else { unmoved_primaries(self.event) };
        if staying.is_empty() {
            return;
        }
        let by_hand = format!("{}: move the primary by hand, once no hook of the event runs", staying.join(" and "));
        if self.is_notice_over() || self.event.hold.as_ref().is_some_and(|hold| hold.no_hooks) {
            self.add(format!("{by_hand}; then look which member is the primary"), command("status", &[]));
            return;
        }
        let does = format!(
            "{by_hand}. Before, hold the event and its hooks: otherwise allclear's own failover may begin in the middle of \
             it, when an endpoint works again"
        );
        self.add_with_reason(does, self.hold(" --no-hooks"));
    }

    fn notice_ends(&self) -> Option<Timestamp> {
        self.event.not_before.as_deref().and_then(from_rfc3339)
    }

    fn is_notice_over(&self) -> bool {
        self.notice_ends().is_some_and(|at| at <= self.now)
    }

    fn held_until(&self) -> String {
        self.notice_ends().map_or_else(|| HELD_FOR.into(), rfc3339)
    }

    fn hold(&self, option: &str) -> Option<String> {
        command("hold", &[&self.event.id]).map(|line| format!("{line} --until {}{option}", self.held_until()))
    }
}
