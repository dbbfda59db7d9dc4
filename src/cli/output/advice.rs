//! Commands that help with an event, to be copied: with all arguments, and quoted for a shell.

use std::time::Duration;

use super::moments;
use super::text::{OutputContext, quoted};
use allclear_server::http::sanitize::sanitize;
use allclear_server::replica::clock::{from_rfc3339, rfc3339};
use allclear_server::replica::view::{DOCTOR, primaries};
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Duration of an offered hold, unless the notice is longer.
const HELD_FOR: Duration = Duration::from_hours(2);

/// The effect of a command, and the command.
pub(super) struct Advice {
    pub(super) does: String,
    pub(super) command: String,
}

impl OutputContext {
    /// A command line for the same replica.
    pub(super) fn command(&self, command: &str, arguments: &[&str], asks_why: bool) -> String {
        // An argument with characters that a reader cannot check, or with the form of an option, is not offered for
        // copying.
        let is_misleading = arguments.iter().any(|argument| sanitize(argument) != **argument);
        if is_misleading || arguments.first().is_some_and(|name| name.starts_with('-')) {
            return format!("allclear events --json{}", self.at);
        }
        let words: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
        let between = if words.is_empty() { "" } else { " " };
        let why = if asks_why { " --reason 'WHY'" } else { "" };
        format!("allclear {command}{between}{}{why}{}", words.join(" "), self.at)
    }
}

/// The event's blockers, the one to act on first in front.
pub(in crate::cli) fn blockers(event: &shown::Event) -> impl Iterator<Item = &shown::Blocker> {
    event.blocker.iter().chain(&event.other_blockers)
}

/// Commands for each blocker, in the order of the blockers, and then the commands for the whole event.
pub(super) fn advice(reader: &OutputContext, event: &shown::Event) -> Vec<Advice> {
    let id = event.id.as_str();
    if event.drill.is_some() {
        let does = "end the drill; every prepared workload is restored".into();
        return vec![Advice { does, command: reader.command("drill --end", &[id], false) }];
    }
    let mut all: Vec<Advice> = blockers(event).flat_map(|blocker| removing(reader, event, blocker)).collect();
    // Without a quorum a replica refuses the other commands.
    if has(event, "no_quorum") || !is_undecided(event) {
        return all;
    }
    all.extend(approving(reader, event));
    all.extend(holding(reader, event));
    all
}

fn has(event: &shown::Event, code: &str) -> bool {
    blockers(event).any(|blocker| blocker.code == code)
}

/// Commands that remove one blocker.
fn removing(reader: &OutputContext, event: &shown::Event, blocker: &shown::Blocker) -> Vec<Advice> {
    let mut all = Vec::new();
    let mut add = |does: String, command: String| all.push(Advice { does, command });
    let id = event.id.as_str();
    let code = blocker.code.as_str();
    match code {
        "no_quorum" => {
            add("show which replicas are unreachable, on each of the VMs".into(), reader.command("status", &[], false));
            add("find the fault, on each unreachable VM".into(), DOCTOR.into());
            if let Some(alone) = &blocker.isolated_approval {
                let revision = event.revision.to_string();
                add(approve_alone(alone), reader.command("approve", &[id, "--alone", "--revision", &revision], true));
            }
        }
        // Without a quorum a replica refuses the commands below.
        _ if has(event, "no_quorum") => {}
        "hold" => {
            let does = "end the hold: if nothing else blocks the event, it is approved, and Azure may start it at once";
            add(does.into(), of(reader, "release", id));
        }
        "paused" => add(
            "end the pause: approvals continue, and Azure may start an approved event at once".into(),
            reader.command("resume", &[], true),
        ),
        "too_early" => {
            let does = "prepare the event now, or --at a time, with all hooks; it is approved when it is prepared, and \
                        Azure may start it at once";
            add(does.into(), of(reader, "prepare", id));
        }
        "no_healthy_channel" => {
            add("find the fault, on each of the VMs".into(), DOCTOR.into());
            if let Some(command) = blocker.approvable_by_hand.as_ref().and_then(|vm| azure_command(event, vm)) {
                let does = "the event may be approved, and lacks only an endpoint: if none can be repaired in time, approve \
                            the event with the Azure CLI (extension maintenance), from any machine (of a scale set: the \
                            type virtualMachineScaleSets, and the name of the set)";
                add(does.into(), command);
            }
        }
        "budget" => {
            let does = "show which members are out of service, and which hooks are owed";
            add(does.into(), reader.command("workload list", &[], false));
            for member in &blocker.unrestored {
                let does = format!("repair {member}; if it serves already, declare it in service");
                add(does, reader.command("workload restored", &[member], true));
            }
        }
        _ => {}
    }
    if let Some(member) = blocker.disconnected.as_ref().filter(|_| !has(event, "no_quorum")) {
        let does = format!(
            "start {member}; if it never connects again, remove its registration, on its VM: the event then goes on \
             without its hooks{}",
            unmoved_primary(&of_member(event, member))
        );
        add(does, reader.command("workload remove", &[member], true));
    }
    for hook in blocker.hooks.iter().filter(|_| !has(event, "no_quorum")) {
        if code == "hook_failed" {
            let does = format!("run {hook} again, once the cause of the failure is mended");
            add(does, reader.command("retry", &[id, hook], true));
        }
        let does =
            format!("skip {hook}: a running hook is stopped, and the event is approved if nothing else blocks it");
        let is_failover = hook.split('/').nth(2).is_some_and(|phase| phase.starts_with("failover"));
        let does = if is_failover { format!("{does}{}", unmoved_primary(event)) } else { does };
        add(does, reader.command("skip", &[id, hook], true));
    }
    all
}

/// The approval by hand through Azure's control plane, which needs no metadata endpoint.
fn azure_command(event: &shown::Event, vm: &str) -> Option<String> {
    if [vm, &event.id].into_iter().any(|name| sanitize(name) != *name || name.starts_with('-')) {
        return None;
    }
    let (vm, id) = (quoted(vm), quoted(&event.id));
    Some(format!(
        "az maintenance scheduledevents acknowledge --subscription SUBSCRIPTION --resource-group GROUP \
         --resource-type virtualMachines --resource-name {vm} --scheduled-events-id {id}"
    ))
}

/// The command for an approval that would not be refused.
fn approving(reader: &OutputContext, event: &shown::Event) -> Option<Advice> {
    let (id, revision) = (event.id.as_str(), event.revision.to_string());
    if event.approved_by_operator {
        return None;
    }
    if ["hold", "paused", "deciding", "no_healthy_channel"].into_iter().any(|code| has(event, code)) {
        return None;
    }
    if has(event, "budget") {
        let does = "approve the event although other members of its groups are out of service, without the rest of the \
                    preparation";
        let over = reader.command("approve", &[id, "--revision", &revision, "--over-budget"], true);
        return Some(Advice { does: format!("{does}{}", unmoved_primary(event)), command: over });
    }
    let does = "approve the event now, without the rest of the preparation; running hooks, except a failover, are \
                stopped, and Azure may start the event at once (refused if the event has changed: run explain again)";
    // A running failover may end first, and move the primary.
    let moves = event.hooks.iter().any(|hook| hook.phase == "failover" && hook.outcome.is_none());
    let does = if moves { does.to_owned() } else { format!("{does}{}", unmoved_primary(event)) };
    Some(Advice { does, command: reader.command("approve", &[id, "--revision", &revision], true) })
}

/// What an approval, or the skip of a failover, takes down.
fn unmoved_primary(event: &shown::Event) -> String {
    let all = primaries(event);
    if all.is_empty() { String::new() } else { format!("; {}, which is NOT moved and goes down", all.join(" and ")) }
}

/// The event as far as it takes down this member.
fn of_member(event: &shown::Event, member: &str) -> shown::Event {
    let is_it = |down: &&shown::TakenDown| format!("{}/{}", down.vm, down.workload) == member;
    shown::Event { takes_down: event.takes_down.iter().filter(is_it).cloned().collect(), ..event.clone() }
}

/// Commands that keep the event from being approved.
fn holding(reader: &OutputContext, event: &shown::Event) -> Vec<Advice> {
    let mut all = Vec::new();
    let mut add = |does: String, command: String| all.push(Advice { does, command });
    let id = event.id.as_str();
    // An event that is only observed is never approved from here, and a hold has no effect after the end of the
    // notice.
    let notice_ends = event.not_before.as_deref().and_then(from_rfc3339);
    if !has(event, "observing") && notice_ends.is_none_or(|at| at > reader.now) {
        let (span, until) = match notice_ends {
            Some(at) if at.since(reader.now) > HELD_FOR => ("until the notice ends", rfc3339(at)),
            _ => ("for two hours from now", "2h".into()),
        };
        let all_the_same = notice_ends.map_or_else(String::new, |at| {
            format!("; Azure may still start the event at {}", moments::moment(reader.now, at))
        });
        // A second hold or pause replaces the first, and could end earlier.
        if event.hold.is_none() {
            let does =
                format!("hold the event: no approval {span}; the members stay in service, or return{all_the_same}");
            add(does, reader.command("hold", &[id, "--until", &until], true));
            if !has(event, "paused") {
                let pause = reader.command("pause --until", &[&until], true);
                add(format!("pause all approvals: no approval of any event {span}"), pause);
            }
        }
    }
    all
}

/// Effect and risks of an approval without a quorum.
fn approve_alone(alone: &shown::IsolatedApproval) -> String {
    let others = alone.other_voters.join(", ");
    // Of a pair nobody has a quorum without the other.
    let quorum = if alone.other_voters.len() > 1 { "have a quorum, " } else { "" };
    let known = if alone.overrides.is_empty() { "none" } else { &alone.overrides.join("; ") };
    format!(
        "approve the event on this replica alone; no hook runs for the event, and {others} may {quorum}hold the \
         event, or approve another event at the same time; objections that this replica knows: {known}"
    )
}

/// Whether no approval of the event was assigned or posted.
fn is_undecided(event: &shown::Event) -> bool {
    matches!(event.stage.as_str(), "announced" | "preparing") && event.approvals.is_empty()
}

fn of(reader: &OutputContext, command: &str, id: &str) -> String {
    reader.command(command, &[id], true)
}

#[cfg(test)]
mod tests;
