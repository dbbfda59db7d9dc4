//! `allclear status`, for people: whether the cluster can act, the blockers of open events, and the members.

use std::time::Duration;

use super::page::{Span, TextBuilder, bold, faint, green, plain, red, yellow};
use super::text::{OutputContext, group_faults, how_far, missing, what};
use super::{event, moments};
use allclear_server::replica::clock_skew::WARN_ABOVE;
use allclear_server::replica::view::primaries;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Width of the names before the blocker of an open event.
const NAMES: usize = 12;

pub(in crate::cli) fn status(reader: &OutputContext, status: &shown::Status) -> String {
    let mut page = TextBuilder::new(reader.paper);
    ability(&mut page, reader, status);
    for warning in &status.warnings {
        let since = moments::written(reader.now, &warning.since);
        page.entry(
            0,
            "WARNING",
            8,
            &[yellow(format!("{} (since {since})", moments::within(reader.now, &warning.text)))],
        );
    }
    page.heading(&match status.events.len() {
        0 => "NO OPEN EVENTS".into(),
        1 => "ONE OPEN EVENT".into(),
        count => format!("{count} OPEN EVENTS"),
    });
    for open in &status.events {
        short(&mut page, reader, open);
    }
    page.heading("REPLICAS");
    page.table(2, &replicas(status));
    if !status.workloads.is_empty() {
        page.heading("WORKLOADS");
        page.table(2, &workloads(reader, status));
    }
    page.into_text()
}

/// Whether the cluster can act: the first information for an operator on call.
fn ability(page: &mut TextBuilder, reader: &OutputContext, status: &shown::Status) {
    let voters = || status.replicas.iter().filter(|replica| replica.voter);
    let answering = voters().filter(|replica| replica.reachable).count();
    let (cluster, count) = (&status.cluster, voters().count());
    let leader = status.leader.as_deref().unwrap_or("no replica");
    let sees_events = status.replicas.iter().any(|replica| replica.metadata == "healthy");
    if let Some(why) = &status.outside_because {
        let name = &status.replica;
        page.line(0, &[red(format!("{name} TAKES NO PART in {cluster}")), plain(format!(": {why}"))]);
    } else if status.quorum {
        let how = format!(": {leader} leads, {answering} of {count} voters answer");
        let can = if sees_events && answering * 2 > count {
            green(format!("cluster {cluster} can act"))
        } else {
            red(format!("cluster {cluster} CANNOT ACT NOW"))
        };
        page.line(0, &[can, plain(how)]);
    } else {
        let how = match status.leader.as_ref().filter(|leader| **leader != status.replica) {
            Some(leader) => format!(": NO QUORUM, {leader} leads and too few of {count} voters answer it"),
            None if answering * 2 > count => {
                format!(": NO QUORUM, no replica leads at this moment though {answering} of {count} voters answer")
            }
            None => format!(": NO QUORUM, {} reaches {answering} of {count} voters", status.replica),
        };
        let what = if count > 2 {
            format!("{} is cut off: cluster {cluster} CANNOT ACT FROM HERE", status.replica)
        } else {
            format!("cluster {cluster} CANNOT ACT")
        };
        page.line(0, &[red(what), plain(how)]);
        let until = if count > 2 {
            "the other replicas may have a quorum and act: run `allclear status` on their VMs before you do anything \
             here; what is shown here of other VMs is as old as the loss of the quorum"
        } else {
            "nothing is decided until both voters reach each other; but a replica of a pair may approve \
             user-initiated events by itself, and an operator may approve an event with `approve --alone`: see \
             `allclear explain`"
        };
        page.line(2, &[plain(until)]);
    }
    if !sees_events {
        let why = format!(
            ": no replica receives documents from Azure's metadata endpoint; run on each VM: {}",
            status.doctor
        );
        page.line(0, &[red("NOBODY SEES EVENTS"), plain(why)]);
    }
    for (group, fault) in status.groups.iter().flat_map(|group| group_faults(group).map(|fault| (&group.name, fault))) {
        page.line(0, &[red(format!("{group} {fault}"))]);
    }
    if let Some(pause) = &status.paused {
        let how = format!(" by {} until {}: {}", pause.by, moments::written(reader.now, &pause.until), pause.reason);
        page.line(0, &[yellow("ALL APPROVALS PAUSED"), plain(how)]);
        page.line(2, &[plain("Azure still starts each event when the notice ends")]);
        if status.quorum {
            page.line(2, &[plain("to end the pause:")]);
            page.verbatim(2, &plain(reader.command("resume --reason 'WHY'", &[])));
        }
        if !pause.unacknowledged_by.is_empty() {
            page.line(2, &[plain(format!("not acknowledged yet by {}", pause.unacknowledged_by.join(", ")))]);
        }
    }
    if let Some(held_back) = held_back(status) {
        page.line(0, &[yellow("TWO VERSIONS"), plain(held_back)]);
    }
    let (replica, role, term) = (&status.replica, &status.role, status.term);
    page.line(0, &[faint(format!("reported by {replica} ({role}, term {term}, allclear {})", status.version))]);
}

/// The members whose program does not know the highest version, where the cluster still uses a lower version.
fn held_back(status: &shown::Status) -> Option<String> {
    let cluster = status.cluster_version;
    let highest = status.replicas.iter().filter_map(|replica| replica.known_version).max()?;
    let is_behind = |replica: &&shown::Replica| replica.known_version.is_none_or(|known| known < highest);
    let members = status.replicas.iter().filter(|replica| replica.member);
    let behind: Vec<&str> = members.filter(is_behind).map(|replica| replica.name.as_str()).collect();
    (highest > cluster && !behind.is_empty()).then(|| {
        let behind = behind.join(" and ");
        format!(
            ": the cluster uses version {cluster} and not yet version {highest}: the program of {behind} does not know \
             version {highest}, or has not reported its version; upgrade or start {behind}"
        )
    })
}

/// An open event in a few lines.
fn short(page: &mut TextBuilder, reader: &OutputContext, open: &shown::Event) {
    let drill = open.drill.as_ref().map(|drill| format!(" (DRILL, {})", drill.mode)).unwrap_or_default();
    page.line(2, &[plain(format!("{}{drill} ", open.id)), bold(what(open)), plain(format!(": {}", how_far(open)))]);
    for primary in primaries(open) {
        page.entry(4, "primary:", NAMES, &[bold(moments::within(reader.now, &primary))]);
    }
    if !open.missing_hooks.is_empty() {
        page.entry(4, "UNPREPARED:", NAMES, &[red(format!("the event started before {}", missing(open)))]);
    }
    match &open.blocker {
        Some(blocker) => {
            page.entry(4, "waits:", NAMES, &[plain(moments::within(reader.now, &blocker.message))]);
            for other in &open.other_blockers {
                page.entry(4, "also:", NAMES, &[plain(moments::within(reader.now, &other.message))]);
            }
            page.entry(4, "next:", NAMES, &[plain(event::next(reader, blocker))]);
            if let Some(left) = event::if_nothing_changes(reader, open, blocker) {
                page.entry(4, "its notice:", NAMES, &[plain(left)]);
            }
        }
        None => page.line(4, &[plain(event::stage(reader, &open.stage))]),
    }
    page.verbatim(4, &faint(reader.command("explain", &[&open.id])));
}

fn replicas(status: &shown::Status) -> Vec<Vec<Span>> {
    let mut rows = vec![["NAME", "VOTE", "ANSWERS", "METADATA", "LAST DOCUMENT", ""].map(faint).to_vec()];
    let is_pair = status.replicas.iter().filter(|replica| replica.voter).count() == 2;
    for replica in &status.replicas {
        let leads = status.leader.as_ref() == Some(&replica.name);
        let vote = match (replica.voter, leads) {
            (true, true) => "voter, leads",
            (true, false) => "voter",
            (false, _) if replica.member => "learner",
            (false, _) => "no member",
        };
        let reachable = if replica.reachable { green("reachable") } else { red("UNREACHABLE") };
        let metadata = match replica.metadata.as_str() {
            word @ "healthy" => green(word),
            word @ "stalled" => red(word),
            word => plain(word),
        };
        let age = match replica.last_document_age_ms {
            _ if !replica.reachable => "unknown".into(),
            Some(ms) => age(ms),
            None => "none yet".into(),
        };
        rows.push(vec![
            plain(&replica.name),
            plain(vote),
            reachable,
            metadata,
            plain(age),
            yellow(remarks(replica, is_pair).join("; ")),
        ]);
    }
    rows
}

fn age(ms: u64) -> String {
    if ms < 1_000 { format!("{ms} ms ago") } else { format!("{} ago", moments::span(Duration::from_millis(ms))) }
}

fn remarks(replica: &shown::Replica, is_pair: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    match (replica.member, replica.configured) {
        (false, _) => remarks.push("configured, but no member".into()),
        (true, false) => remarks.push("a member, but not in cluster.replicas".into()),
        (true, true) => {}
    }
    remarks.extend(replica.clock_difference_ms.and_then(clock));
    if replica.suspect {
        remarks.push(match (replica.reachable, is_pair) {
            (true, _) => "has not reported yet whether it approved an event alone".into(),
            (false, true) => "may approve user-initiated events by itself".into(),
            (false, false) => "may approve an event by itself if an operator asks it".into(),
        });
    }
    remarks.extend(replica.unreached_because.as_ref().map(|why| format!("not reached from here: {why}")));
    remarks
}

/// A warning about a clock that differs by more than `WARN_ABOVE`.
pub(super) fn clock(ahead_ms: i64) -> Option<String> {
    let apart = Duration::from_millis(ahead_ms.unsigned_abs());
    let which = if ahead_ms > 0 { "ahead of" } else { "behind" };
    (apart > WARN_ABOVE).then(|| format!("CLOCK {:.1} s {which} the cluster's clock", apart.as_secs_f64()))
}

/// The role, or the last report with its age.
fn role(reader: &OutputContext, workload: &shown::Workload) -> Span {
    match &workload.last_role {
        Some(shown::LastRole { role, unreachable_since: Some(since) }) => {
            plain(format!("unknown ({role} before {})", moments::written(reader.now, since)))
        }
        Some(last) if last.role == "primary" => plain("unknown (says primary, and so does another member)"),
        Some(last) => plain(format!("unknown ({} at last)", last.role)),
        None if workload.role == "primary" => bold("primary"),
        None => plain(&workload.role),
    }
}

/// Whether the member serves.
fn state(status: &shown::Status, workload: &shown::Workload) -> Span {
    let is_it = |member: &&shown::MemberState| member.vm == workload.vm && member.workload == workload.name;
    match status.members.iter().find(is_it).map(|member| member.state.as_str()) {
        Some("in_service") | None => plain("in service"),
        Some(word) => red(word.replace('_', " ")),
    }
}

fn workloads(reader: &OutputContext, status: &shown::Status) -> Vec<Vec<Span>> {
    let mut sorted: Vec<&shown::Workload> = status.workloads.iter().collect();
    sorted.sort_by_key(|workload| (&workload.group, &workload.name, &workload.vm));
    let mut rows = vec![["GROUP", "NAME", "VM", "ROLE", "STATE", "CONNECTED", "HOOKS FOR"].map(faint).to_vec()];
    for workload in sorted {
        let connected = if workload.connected { plain("yes") } else { red("NO") };
        rows.push(vec![
            plain(workload.group.as_deref().unwrap_or("-")),
            plain(&workload.name),
            plain(&workload.vm),
            role(reader, workload),
            state(status, workload),
            connected,
            plain(workload.phases.join(", ")),
        ]);
    }
    rows
}
