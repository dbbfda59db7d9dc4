//! Commands that help with an event, to be copied: with all arguments, and quoted for a shell.

mod holds;
mod quorum;
mod returning;
mod sentences;

pub use self::sentences::{approve_alone, runs_from};

use std::collections::BTreeMap;

use self::sentences::{azure_line, by_hand, go_down, of_member, unmoved_primary};
use super::{going_down, unmoved_primaries, unmoved_without};
use crate::sanitize::{is_misleading, quoted};
use allclear_core::model::time::Timestamp;
use allclear_wire::pb::allclear::operator::v1 as shown;

const WHY: &str = " --reason 'WHY'";

/// A command line for a replica; `None` for an argument that a reader cannot check, or that has the form of an option.
pub fn command(command: &str, arguments: &[&str]) -> Option<String> {
    let is_harmless = !arguments.iter().any(|argument| is_misleading(argument));
    let words = arguments.iter().map(|argument| format!(" {}", quoted(argument)));
    is_harmless.then(|| words.fold(format!("allclear {command}"), |line, word| line + &word))
}

/// What the commands depend on beside the shown event.
#[derive(Default)]
pub(super) struct Facts {
    /// A replica without a quorum refuses most requests.
    pub lacks_quorum: bool,
    /// The cluster still accepts requests about the event's approval.
    pub is_undecided: bool,
    /// Without a hold and a pause the hooks run again, the failed hooks too.
    pub hooks_run_again: bool,
    /// When the failed restore of a member is tried again.
    pub retries: BTreeMap<String, Timestamp>,
    /// Since when the workloads of members that wait for their restore are disconnected.
    pub away: BTreeMap<String, Timestamp>,
    /// Sentences about the primaries of other events without a failover that is left, during a pause.
    pub unmoved_elsewhere: Vec<String>,
    /// The time of the last document, while no replica receives documents.
    pub last_document: Option<Timestamp>,
}

/// The commands for an event, in the order of the event's blockers, and then those for the event as a whole.
pub(super) fn of(event: &shown::Event, facts: &Facts, now: Timestamp, doctor: &str) -> Vec<shown::Advice> {
    let mut all = Commands { event, facts, now, doctor, found: Vec::new() };
    if is_misleading(&event.id) {
        let does = "look at the event as JSON: its id has letters that should not be copied into a shell";
        all.add(does, Some("allclear events --json".into()));
        return all.found;
    }
    all.move_by_hand();
    for blocker in blockers(event) {
        all.against(blocker);
    }
    // Without a quorum a replica refuses the other commands.
    if all.has("no_quorum") || facts.lacks_quorum {
        return all.found;
    }
    all.returning();
    if event.drill.is_some() && event.stage != "closed" {
        all.add("end the drill; every prepared workload is restored", command("drill --end", &[&event.id]));
    } else if facts.is_undecided {
        all.approval();
        all.holds();
    }
    all.found
}

/// The event's blockers, the one to act on first in front.
pub fn blockers(event: &shown::Event) -> impl Iterator<Item = &shown::Blocker> {
    event.blocker.iter().chain(&event.other_blockers)
}

struct Commands<'a> {
    event: &'a shown::Event,
    facts: &'a Facts,
    now: Timestamp,
    /// The command that finds a fault of a replica.
    doctor: &'a str,
    found: Vec<shown::Advice>,
}

impl Commands<'_> {
    /// Adds a command for a replica; nothing for a command with a misleading name.
    fn add(&mut self, does: impl Into<String>, command: Option<String>) {
        let told = command.map(|command| shown::Advice { does: does.into(), command, takes_endpoint: true });
        self.found.extend(told);
    }

    /// Adds a command with a reason for the record.
    fn add_with_reason(&mut self, does: impl Into<String>, command: Option<String>) {
        self.add(does, command.map(|command| command + WHY));
    }

    /// Adds a command that addresses no replica.
    fn add_other(&mut self, does: &str, command: String) {
        self.found.push(shown::Advice { does: does.into(), command, takes_endpoint: false });
    }

    fn has(&self, code: &str) -> bool {
        blockers(self.event).any(|blocker| blocker.code == code)
    }

    /// Commands that remove one blocker.
    fn against(&mut self, blocker: &shown::Blocker) {
        match blocker.code.as_str() {
            "no_quorum" => self.without_quorum(blocker),
            // Without a quorum a replica refuses the commands below, and a drill is ended as a whole.
            _ if self.has("no_quorum") || self.event.drill.is_some() => {}
            // An endpoint is missed also for a repeated approval.
            "posting" | "post_failed" | "views_differ" | "no_healthy_channel" => self.without_post(blocker),
            _ if self.facts.is_undecided => self.against_one(blocker),
            _ => {}
        }
    }

    fn against_one(&mut self, blocker: &shown::Blocker) {
        let id = self.event.id.as_str();
        match blocker.code.as_str() {
            "hold" => {
                let does = format!("end the hold: {}", self.goes_on_without(blocker));
                self.add_with_reason(does, command("release", &[id]));
            }
            "paused" => {
                let mut does = format!("end the pause of all approvals: {}", self.goes_on_without(blocker));
                if let Some(others) = going_down(&self.facts.unmoved_elsewhere) {
                    does = format!("{does}. Other events go on too: {others}");
                }
                self.add_with_reason(does, command("resume", &[]));
            }
            // During a hold or a pause an earlier start would let no hook run but a checkpoint.
            "too_early" if self.has("hold") || self.has("paused") => {}
            "too_early" => {
                let does = format!(
                    "prepare the event now, or --at a time, with all hooks; it is approved when it is prepared, and Azure \
                     may start it at once{}",
                    go_down(&unmoved_primaries(self.event))
                );
                self.add_with_reason(does, command("prepare", &[id]));
            }
            "budget" => {
                let does = "show which members are out of service, and which hooks are owed";
                self.add(does, command("workload list", &[]));
                for member in &blocker.unrestored {
                    let does = format!(
                        "repair {member}; only if you have seen that it serves already, declare it in service: an event \
                         that waits for it then takes its members down at once"
                    );
                    self.add_with_reason(does, command("workload restored", &[member]));
                }
            }
            _ => self.of_hooks(blocker),
        }
    }

    /// What the end of a hold or pause leads to.
    fn goes_on_without(&self, removed: &shown::Blocker) -> String {
        let runs_again = |other: &shown::Blocker| other.code == "hook_failed" && self.facts.hooks_run_again;
        let then = if blockers(self.event).any(|other| other.code != removed.code && !runs_again(other)) {
            "the event still waits for its other blockers"
        } else if self.has("hook_failed") {
            "the hooks run again, the failed hook too, and the event is approved when it is prepared; Azure may start \
             it at once"
        } else {
            "the event goes on, and is approved when it is prepared; Azure may start it at once"
        };
        format!("{then}{}", go_down(&unmoved_primaries(self.event)))
    }

    /// The repair of the endpoints, and the approval that needs none.
    fn without_post(&mut self, blocker: &shown::Blocker) {
        self.add_other("find the fault, on each of the VMs", self.doctor.into());
        if let Some(line) = blocker.approvable_by_hand.as_ref().and_then(|vm| azure_line(&self.event.id, vm)) {
            self.add_other(&by_hand(self.event, blocker, self.facts.last_document), line);
        }
    }

    fn of_hooks(&mut self, blocker: &shown::Blocker) {
        let id = self.event.id.as_str();
        if let Some(member) = &blocker.disconnected {
            let does = format!(
                "start {member}; if it never connects again, remove its registration, on its VM: the event then goes on \
                 without its hooks{}",
                unmoved_primary(&of_member(self.event, member))
            );
            self.add_with_reason(does, command("workload remove", &[member]));
        }
        for hook in &blocker.hooks {
            if blocker.code == "hook_failed" {
                let then = runs_from(self.event).map_or_else(String::new, |from| format!("; it runs {from}"));
                let does = format!("run the hook {hook} again, once the cause of the failure is mended{then}");
                self.add_with_reason(does, command("retry", &[id, hook]));
            }
            let unmoved = go_down(&unmoved_without(self.event, hook));
            let does =
                format!("skip the hook {hook}: a running hook is stopped, and {}{unmoved}", self.goes_on_with_others());
            self.add_with_reason(does, command("skip", &[id, hook]));
        }
    }

    /// How the event goes on without one of its hooks.
    fn goes_on_with_others(&self) -> String {
        let when = match (&self.event.hold, self.has("paused")) {
            _ if self.event.approved_by_operator => {
                return "the event is approved, without the hooks that are left".into();
            }
            (Some(hold), _) if hold.no_hooks && !hold.starts_before.is_empty() => {
                return "no other hook begins before Azure starts the event, unless you release the event".into();
            }
            (Some(hold), _) if !hold.starts_before.is_empty() => {
                return "hooks that are left run shortly before the notice ends, without an approval".into();
            }
            (Some(_), _) => " when the hold ends",
            (None, true) => " when the pause ends",
            (None, false) => "",
        };
        format!("the event goes on{when}: hooks that are left run before the approval")
    }

    /// The command for an approval that would not be refused.
    fn approval(&mut self) {
        // Refused, or without effect on an event that may be approved already.
        let without = ["hold", "paused", "deciding", "no_healthy_channel", "not_listed", "post_failed", "views_differ"];
        if without.into_iter().any(|code| self.has(code)) || self.event.approved_by_operator {
            return;
        }
        let unmoved = unmoved_primary(self.event);
        if self.has("budget") {
            let does = format!(
                "approve the event although other members of its groups are out of service, without the rest of the \
                 preparation{unmoved}"
            );
            self.add_with_reason(does, self.approve("--over-budget"));
            return;
        }
        // A running failover may end first, and move the primary.
        let moves = self.event.hooks.iter().any(|hook| hook.phase == "failover" && hook.outcome.is_none());
        let does = format!(
            "approve the event now, without the rest of the preparation; running hooks, except a failover, are stopped, \
             and Azure may start the event at once (refused if the event has changed: look at the event again){}",
            if moves { "" } else { &unmoved }
        );
        self.add_with_reason(does, self.approve(""));
    }

    fn approve(&self, option: &str) -> Option<String> {
        let blank = if option.is_empty() { "" } else { " " };
        command("approve", &[&self.event.id])
            .map(|line| format!("{line}{blank}{option} --revision {}", self.event.revision))
    }
}

#[cfg(test)]
mod tests;
