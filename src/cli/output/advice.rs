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
            if let Some(command) = azure_command(event) {
                let does = "if no endpoint can be repaired in time: prepare the members by hand, and then approve the event \
                            with the Azure CLI, from any machine";
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
            unmoved_primary(event)
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
fn azure_command(event: &shown::Event) -> Option<String> {
    let is_clear = |name: &&String| sanitize(name) == **name && !name.starts_with('-');
    let (vm, id) = (event.resources.first().filter(is_clear)?, Some(&event.id).filter(is_clear)?);
    Some(format!(
        "az maintenance scheduledevents acknowledge --resource-group GROUP --resource-type virtualMachines \
         --resource-name {} --scheduled-events-id {}",
        quoted(vm),
        quoted(id)
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
mod tests {
    use std::path::Path;

    use super::*;
    use crate::cli::output::page::Terminal;
    use allclear_core::model::time::Timestamp;

    #[test]
    fn a_name_that_would_mislead_whoever_copies_it_is_not_there_to_be_copied() {
        let reader = OutputContext::at(Path::new("/run/allclear/operator.sock"));
        let command = |id| reader.command("hold", &[id, "--until", "2h"], true);
        assert_eq!(command("A b"), "allclear hold 'A b' --until 2h --reason 'WHY'");
        for id in ["--endpoint=/tmp/a", "-h", "A\u{202e}b", "A\u{1b}[2Jb", "A\nb", "A\u{a0}b"] {
            assert_eq!(command(id), "allclear events --json", "{id:?}");
        }
    }

    #[test]
    fn what_means_something_to_a_shell_is_quoted() {
        assert_eq!(quoted("7B4C-99"), "7B4C-99");
        assert_eq!(quoted("db-0/postgres/drain#2"), "'db-0/postgres/drain#2'");
        assert_eq!(quoted("$(reboot) it's"), r"'$(reboot) it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    fn offered(code: &str, is_held: bool) -> Vec<String> {
        offered_beside(code, &[], is_held, None)
    }

    fn offered_when(code: &str, is_held: bool, notice_ends: Option<i64>) -> Vec<String> {
        offered_beside(code, &[], is_held, notice_ends)
    }

    fn offered_beside(code: &str, others: &[&str], is_held: bool, notice_ends: Option<i64>) -> Vec<String> {
        let reader = OutputContext { paper: Terminal::PLAIN, now: Timestamp(0), at: " --endpoint /s".into() };
        let hold = is_held.then(shown::Pause::default);
        let not_before = notice_ends.map(|at| rfc3339(Timestamp(at)));
        let (id, stage) = ("e".into(), "preparing".into());
        let hooks = if code.starts_with("hook_") { vec!["db-0/postgres/drain#2".into()] } else { Vec::new() };
        let blocker = shown::Blocker { code: code.into(), hooks, ..Default::default() };
        let mut event =
            shown::Event { id, stage, revision: 7, hold, not_before, blocker: Some(blocker), ..Default::default() };
        let other = |code: &&str| shown::Blocker { code: (*code).into(), ..Default::default() };
        event.other_blockers = others.iter().map(other).collect();
        let commands = advice(&reader, &event).into_iter().map(|advice| advice.command);
        commands.map(|command| command.replace(" --reason 'WHY'", "").replace(" --endpoint /s", "")).collect()
    }

    fn told(blocker: shown::Blocker, change: impl FnOnce(&mut shown::Event)) -> String {
        let reader = OutputContext { paper: Terminal::PLAIN, now: Timestamp(0), at: String::new() };
        let primary = shown::TakenDown {
            vm: "db-0".into(),
            workload: "pg".into(),
            group: Some("orders-db".into()),
            role: "primary".into(),
            ..Default::default()
        };
        let (id, stage, takes_down) = ("e".into(), "preparing".into(), vec![primary]);
        let mut event = shown::Event { id, stage, takes_down, blocker: Some(blocker), ..Default::default() };
        change(&mut event);
        let lines = advice(&reader, &event).into_iter().map(|advice| format!("{}\n{}\n", advice.does, advice.command));
        lines.collect()
    }

    #[test]
    fn who_takes_a_primary_down_is_told_so() {
        let blocked = |code: &str| shown::Blocker { code: code.into(), ..Default::default() };
        let warns = |text: &str| text.contains("db-0 holds the primary of orders-db, which is NOT moved and goes down");
        assert!(warns(&told(blocked("budget"), |_| {})) && warns(&told(blocked("too_early"), |_| {})));
        let runs = |event: &mut shown::Event| {
            event.hooks.push(shown::Hook { phase: "failover".into(), ..Default::default() });
        };
        assert!(!warns(&told(blocked("too_early"), runs)), "the failover may end before the approval");
        assert!(!told(blocked("too_early"), |event| event.approved_by_operator = true).contains("allclear approve"));
    }

    #[test]
    fn the_command_for_a_member_that_is_away_or_not_restored_is_offered() {
        let away =
            shown::Blocker { code: "hook_blocked".into(), disconnected: Some("db-0/pg".into()), ..Default::default() };
        let offered = told(away, |_| {});
        assert!(offered.contains("allclear workload remove db-0/pg --reason 'WHY'"), "{offered}");
        assert!(offered.contains("goes on without its hooks; db-0 holds the primary"), "{offered}");
        let owed = shown::Blocker { code: "budget".into(), unrestored: vec!["db-1/pg".into()], ..Default::default() };
        let offered = told(owed, |_| {});
        assert!(offered.contains("allclear workload restored db-1/pg --reason 'WHY'"), "{offered}");
    }

    #[test]
    fn a_blind_cluster_is_given_the_way_through_azure() {
        let blind = || shown::Blocker { code: "no_healthy_channel".into(), ..Default::default() };
        let offered = told(blind(), |event| event.resources = vec!["db-0".into()]);
        let wanted = "az maintenance scheduledevents acknowledge --resource-group GROUP --resource-type virtualMachines \
                      --resource-name db-0 --scheduled-events-id e\n";
        assert!(offered.contains(wanted), "{offered}");
        let odd = told(blind(), |event| event.resources = vec!["--help".into()]);
        assert!(!odd.contains("az maintenance"), "{odd}");
    }

    #[test]
    fn a_hold_is_offered_up_to_the_end_of_the_notice_and_not_after_it() {
        assert_eq!(offered_when("deciding", false, Some(60_000))[0], "allclear hold e --until 2h");
        assert_eq!(
            offered_when("deciding", false, Some(9_000_000))[0],
            "allclear hold e --until 1970-01-01T02:30:00.000Z"
        );
        assert_eq!(offered_when("deciding", false, Some(-1)), [""; 0]);
    }

    #[test]
    fn what_removes_each_blocker_is_offered_and_nothing_that_another_blocker_forbids() {
        let hook = "e 'db-0/postgres/drain#2'";
        let (retry, skip) = (format!("allclear retry {hook}"), format!("allclear skip {hook}"));
        assert_eq!(offered_beside("hook_failed", &["hold"], true, None), [&retry, &skip, "allclear release e"]);
        let wanted = [&retry, &skip, "allclear resume", "allclear hold e --until 2h"];
        assert_eq!(offered_beside("hook_failed", &["paused"], false, None), wanted);
        assert_eq!(offered_beside("no_quorum", &["hold", "hook_failed"], true, None), ["allclear status", DOCTOR]);
    }

    #[test]
    fn what_helps_is_offered_and_nothing_that_would_be_refused() {
        let (hold, pause) = ("allclear hold e --until 2h", "allclear pause --until 2h");
        let approve = "allclear approve e --revision 7";
        for (code, wanted) in [
            (
                "hook_failed",
                &[
                    "allclear retry e 'db-0/postgres/drain#2'",
                    "allclear skip e 'db-0/postgres/drain#2'",
                    approve,
                    hold,
                    pause,
                ][..],
            ),
            ("hold", &["allclear release e"]),
            ("paused", &["allclear resume", hold]),
            ("budget", &["allclear workload list", "allclear approve e --revision 7 --over-budget", hold, pause]),
            ("too_early", &["allclear prepare e", approve, hold, pause]),
            ("observing", &[approve]),
            ("no_quorum", &["allclear status", DOCTOR]),
            ("no_healthy_channel", &[DOCTOR, hold, pause]),
        ] {
            assert_eq!(offered(code, code == "hold"), wanted, "{code}");
        }
    }
}
