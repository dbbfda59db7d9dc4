//! `allclear explain`, for people: the blocker of an event, the next automatic step and its time, and the commands
//! that help.

mod hooks;

use super::moments;
use super::page::{TextBuilder, bold, faint, green, plain, red, yellow};
use super::text::{OutputContext, how_far, is_early, missing, summary, what};
use allclear_server::replica::clock::from_rfc3339;
use allclear_server::replica::view::primaries;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Width of the names at the left.
const NAMES: usize = 15;

pub(in crate::cli) fn event(reader: &OutputContext, event: &shown::Event) -> String {
    let mut page = TextBuilder::new(reader.paper);
    head(&mut page, reader, event);
    verdict(&mut page, reader, event);
    hooks::table(&mut page, reader, event);
    page.heading("WHAT HAPPENED");
    let row = |step: &shown::Step| {
        let at = from_rfc3339(&step.at).unwrap_or(reader.now);
        let (clock, ago) = (moments::clock(reader.now, at), moments::relative(reader.now, at));
        let more = [&step.who, &step.why].into_iter().flatten().filter(|more| !step.what.contains(more.as_str()));
        let whole = more.fold(step.what.clone(), |whole, more| format!("{whole} ({more})"));
        vec![plain(clock), faint(ago), plain(moments::within(reader.now, &whole))]
    };
    page.table(2, &event.timeline.iter().map(row).collect::<Vec<_>>());
    page.into_text()
}

/// The only open event, or which there are.
pub(in crate::cli) fn all_open(reader: &OutputContext, list: &shown::EventList) -> String {
    if let [only] = &list.events[..] {
        return event(reader, only);
    }
    let mut page = TextBuilder::new(reader.paper);
    if list.events.is_empty() {
        page.line(0, &[plain("no open events; closed ones: "), plain(reader.command("events", &[]))]);
    } else {
        page.line(0, &[bold(format!("{} open events", list.events.len())), plain("; name one of them:")]);
    }
    for event in &list.events {
        page.line(0, &[plain(summary(event))]);
        if let Some(blocker) = &event.blocker {
            let more = more_blockers(event);
            page.line(4, &[plain(format!("waits: {}{more}", moments::within(reader.now, &blocker.message)))]);
        }
        page.verbatim(4, &faint(reader.command("explain", &[&event.id])));
    }
    page.into_text()
}

fn head(page: &mut TextBuilder, reader: &OutputContext, event: &shown::Event) {
    let title = if event.drill.is_some() { "DRILL: " } else { "" };
    page.line(0, &[bold(format!("{title}{}", what(event))), plain(format!(": {}", how_far(event)))]);
    let drill = event.drill.as_ref().map(|drill| format!("a {} by {}: it is never approved", drill.mode, drill.who));
    let mut entry = |name: &str, said: String| page.entry(2, name, NAMES, &[plain(said)]);
    entry("event", event.id.clone());
    if let Some(drill) = drill {
        entry("DRILL", drill);
    }
    let primaries = primaries(event);
    if !primaries.is_empty() {
        entry("PRIMARY", moments::within(reader.now, &primaries.join("; ")));
    }
    if !event.takes_down.is_empty() {
        let down = |it: &shown::TakenDown| format!("{} on {} ({})", it.workload, it.vm, it.role);
        entry("takes down", event.takes_down.iter().map(down).collect::<Vec<_>>().join(", "));
    }
    if !event.description.is_empty() {
        entry("description", event.description.clone());
    }
    let meaning = if is_early(event) { "waits for the start of its preparation" } else { stage(reader, &event.stage) };
    entry("stage", format!("{}: {meaning}", event.stage));
    let treatment = event.treatment.as_deref().unwrap_or("not chosen yet");
    let rule = event.rule.as_ref().map(|rule| format!(" (rule: {rule})")).unwrap_or_default();
    entry("treatment", format!("{treatment}{rule}"));
    if event.drill.is_none() {
        let said = |at: &String| moments::written(reader.now, at);
        entry("notice ends", event.not_before.as_ref().map_or_else(|| no_notice_end(reader, event), said));
    }
    if event.duration_s >= 0 {
        entry("duration", format!("{} s, as Azure expects", event.duration_s));
    }
    entry("revision", event.revision.to_string());
    if !event.seen_by.is_empty() {
        entry("seen by", event.seen_by.join(", "));
    }
}

fn verdict(page: &mut TextBuilder, reader: &OutputContext, event: &shown::Event) {
    if !event.missing_hooks.is_empty() {
        unprepared(page, reader, event);
        return;
    }
    let Some(blocker) = &event.blocker else {
        if event.stage != "closed" {
            page.heading("NOTHING TO APPROVE ANY MORE");
            page.line(2, &[plain(stage(reader, &event.stage))]);
            advice(page, reader, event);
        }
        return;
    };
    page.blank();
    let title = match blocker.code.as_str() {
        "waiting_for_platform" => green("APPROVED, AND NOT STARTED YET"),
        "posting" => yellow("BEING APPROVED RIGHT NOW"),
        _ if event.drill.is_some() => yellow("NOT DONE YET"),
        "no_quorum" => red("NOT APPROVED, AS FAR AS THIS REPLICA KNOWS"),
        _ => red("NOT APPROVED YET"),
    };
    page.line(0, &[title, faint(format!("  ({})", blocker.code))]);
    let mut entry = |name: &str, said: String| page.entry(2, name, NAMES, &[plain(said)]);
    entry("why", moments::within(reader.now, &blocker.message));
    if let Some(background) = background(blocker) {
        entry("", background.into());
    }
    entry("next", next(reader, blocker));
    if let Some(left) = if_nothing_changes(reader, event, blocker) {
        entry("its notice", left);
    }
    entry("who can help", blocker.resolved_by.clone());
    for other in &event.other_blockers {
        entry("also", format!("{} ({})", moments::within(reader.now, &other.message), other.code));
    }
    advice(page, reader, event);
}

/// The commands that help.
fn advice(page: &mut TextBuilder, reader: &OutputContext, event: &shown::Event) {
    let is_decided = matches!(event.stage.as_str(), "claimed" | "approved");
    if is_decided || !event.advice.is_empty() {
        page.heading("WHAT YOU CAN DO");
    }
    if is_decided {
        page.line(2, &[plain("a hold has no effect any more: the approval is assigned or given")]);
    }
    for advice in &event.advice {
        page.line(2, &[plain(moments::within(reader.now, &advice.does))]);
        let at = if advice.takes_endpoint { reader.at.as_str() } else { "" };
        page.verbatim(6, &bold(format!("{}{at}", advice.command)));
    }
}

/// What remains to a person when nothing can be prepared any more.
fn unprepared(page: &mut TextBuilder, reader: &OutputContext, event: &shown::Event) {
    page.blank();
    page.line(0, &[red("STARTED UNPREPARED")]);
    page.entry(2, "why", NAMES, &[plain(format!("the event started before {}", missing(event)))]);
    page.entry(2, "next", NAMES, &[plain("the workloads on the VM are restored after the event")]);
    page.heading("WHAT YOU CAN DO");
    let failover = event.hooks.iter().find(|hook| hook.phase == "failover" && hook.outcome.is_none());
    let otherwise = failover.map_or_else(String::new, |hook| {
        let at = moments::written(reader.now, &hook.deadline);
        format!(" when allclear's own failover has ended, at the latest at {at}:")
    });
    page.line(
        2,
        &[plain(format!(
            "check that the other members serve;{otherwise} if none is the primary, and the VM does not come back soon, fail \
             over by hand to the member with the newest data: the writes that it lacks are lost"
        ))],
    );
    page.verbatim(6, &bold(reader.command("status", &[])));
}

/// The number of further blockers, after the text of the first.
fn more_blockers(event: &shown::Event) -> String {
    match event.other_blockers.len() {
        0 => String::new(),
        1 => " (and 1 other reason)".into(),
        many => format!(" (and {many} other reasons)"),
    }
}

/// The next automatic step, and its time.
pub(super) fn next(reader: &OutputContext, blocker: &shown::Blocker) -> String {
    let until = blocker.until.as_ref().filter(|until| !blocker.next.contains(until.as_str()));
    let when = until.map(|until| format!(": {}", moments::written(reader.now, until)));
    format!("{}{}", moments::within(reader.now, &blocker.next), when.unwrap_or_default())
}

/// Azure starts the event at the end of the notice, even if the cluster still waits.
pub(super) fn if_nothing_changes(
    reader: &OutputContext,
    event: &shown::Event,
    blocker: &shown::Blocker,
) -> Option<String> {
    let may_start = matches!(event.stage.as_str(), "announced" | "preparing" | "claimed" | "approved");
    if !may_start || event.drill.is_some() {
        return None;
    }
    let Some(at) = event.not_before.as_deref().and_then(from_rfc3339) else {
        let usual = "Azure may start the event when the usual notice of the type ends";
        return Some(format!("{}; {usual}", no_notice_end(reader, event)));
    };
    let when = moments::moment(reader.now, at);
    if at <= reader.now {
        return Some(format!("ended {when}; Azure may start the event at any moment"));
    }
    let is_told = blocker.until == event.not_before;
    (!is_told).then(|| format!("ends {when}; from then on Azure may start the event, approved or not"))
}

/// Why the end of the notice is unknown.
fn no_notice_end(reader: &OutputContext, event: &shown::Event) -> String {
    if matches!(event.stage.as_str(), "started" | "restoring" | "closed") {
        return "unknown".into();
    }
    match &event.ignored_not_before {
        Some(at) => format!(
            "unknown: Azure said {}, which was over when the event was first seen; compare the clocks (`{}`)",
            moments::written(reader.now, at),
            reader.command("status", &[])
        ),
        None => {
            "unknown: Azure gave no time, or nothing confirms the cluster's time (`allclear status` warns then)".into()
        }
    }
}

/// Explanation of a blocker's term, where the blocker's message presumes knowledge of the term.
fn background(blocker: &shown::Blocker) -> Option<&'static str> {
    Some(match blocker.code.as_str() {
        "too_early" => {
            "preparation starts policy.prepare_ahead before the notice ends, or in the window of the event's rule"
        }
        "hook_waiting" if !blocker.hooks.is_empty() => {
            "the hooks of one workload run one after the other, each on a reachable replica"
        }
        "hook_failed" => "the hook is declared to hold the event when it fails (on_failure = \"hold\")",
        "budget" => "max_unavailable of a group limits how many members may be out of service at once",
        "no_quorum" => {
            "more than half of the voters must agree on each decision; until then, hold, release and skip are refused"
        }
        "no_healthy_channel" => "approvals are posted to the metadata endpoint of a VM, and no endpoint answers",
        "observing" => "no hook runs for the event, and no replica approves the event automatically",
        "waiting_for_platform" => "Azure chooses the time, and an approval cannot be taken back",
        _ => return None,
    })
}

/// The meaning of a stage.
pub(super) fn stage(reader: &OutputContext, stage: &str) -> &'static str {
    match stage {
        "started" if reader.lacks_quorum => {
            "Azure carries out the event; the restore of the workloads begins when the event has ended and a quorum is back"
        }
        "restoring" if reader.lacks_quorum => {
            "the event has ended, and the restore of the workloads waits for a quorum: until then no further hook begins"
        }
        "announced" => "the event was announced, and no hook was begun",
        "preparing" => "the workloads are prepared before the approval",
        "claimed" => "the approval is assigned to a replica, and this replica posts it",
        "approved" => "Azure has accepted the approval",
        "started" => "Azure carries out the event; the restore of the workloads begins when the event has ended",
        "restoring" => "the event has ended, and the workloads are being restored",
        "closed" => "nothing is left to do",
        _ => "a stage that this version does not know",
    }
}

#[cfg(test)]
mod tests;
