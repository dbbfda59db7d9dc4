//! The live view: who is there, who leads, and how far each open event is.

use super::screen::{Colour, Screen};
use crate::cli::stage::moment::{read, seconds};
use crate::cli::stage::sight::{Seen, Sight};
use crate::replica::clock;
use crate::wire::pb::allclear::operator::v1 as shown;

/// Hooks of one event that are shown at most, the latest.
const MOST_HOOKS: usize = 6;

/// As lines, drawn anew each time; with what is told of clients where there are any.
pub(super) fn board(sight: &Sight, clients: Option<String>, screen: &Screen) -> Vec<String> {
    let mut lines = vec![screen.paint(Colour::Faint, &"-".repeat(72))];
    lines.extend(clients);
    lines.extend(sight.replicas.iter().map(|seen| replica(seen, sight, screen)));
    let open = sight.answers().map(|(_, answer)| &answer.status).max_by_key(|status| status.term);
    for event in open.into_iter().flat_map(|status| &status.events) {
        lines.extend(of_event(event, screen));
    }
    lines
}

fn replica(seen: &Seen, sight: &Sight, screen: &Screen) -> String {
    let Some(answer) = &seen.answer else {
        return format!("{:<6} {}", seen.name, screen.paint(Colour::Red, "does not answer"));
    };
    let status = &answer.status;
    let leads = sight.leader().is_some_and(|(leader, _)| leader == seen.name);
    let role = format!("{:<10}", status.role);
    let role = if leads { screen.paint(Colour::Bold, &role) } else { role };
    let own = status.replicas.iter().find(|replica| replica.name == seen.name);
    let metadata = own.map_or("unknown", |replica| replica.metadata.as_str());
    let quorum = if status.quorum { String::new() } else { screen.paint(Colour::Red, "  no quorum") };
    let database = status.workloads.iter().find(|workload| workload.vm == seen.name && workload.role != "unknown");
    let database = database.map_or_else(String::new, |known| format!("  {}: {}", known.name, known.role));
    format!("{:<6} {role} term {:<3} metadata {metadata}{database}{quorum}", seen.name, status.term)
}

fn of_event(event: &shown::Event, screen: &Screen) -> Vec<String> {
    let starts = event.not_before.as_deref().filter(|_| event.status.as_deref() == Some("Scheduled")).and_then(read);
    let left = starts.map(|at| seconds(clock::now(), at)).filter(|left| *left > 0.0);
    let left = left.map_or_else(String::new, |left| format!(", starts by itself in {left:.0} s"));
    let head = format!("{} by {} of {}: ", event.r#type, event.source, event.resources.join(", "));
    let mut lines = vec![format!("{head}{}{left}", screen.paint(Colour::Bold, &event.stage))];
    let from = event.hooks.len().saturating_sub(MOST_HOOKS);
    lines.extend(event.hooks[from..].iter().map(|each| hook(each, screen)));
    for approval in &event.approvals {
        let outcome = approval.outcome.as_deref().unwrap_or("is being posted");
        let text = format!("all-clear    by {}: {outcome} ({})", approval.approver, approval.reason);
        let colour = if outcome == "accepted" { Colour::Green } else { Colour::Yellow };
        lines.push(format!("  {}", screen.paint(colour, &text)));
    }
    if let Some(blocker) = &event.blocker {
        lines.push(format!("  {}", screen.paint(Colour::Faint, &format!("waits: {}", blocker.message))));
    }
    lines
}

fn hook(hook: &shown::Hook, screen: &Screen) -> String {
    let ended = hook.ended_at.as_deref().and_then(read).unwrap_or_else(clock::now);
    let took = read(&hook.started_at).map_or(0.0, |begun| seconds(begun, ended));
    let (colour, how) = match hook.outcome.as_deref() {
        None => (Colour::Yellow, hook.progress.as_deref().unwrap_or("runs")),
        Some("done") => (Colour::Green, "done"),
        Some(other) => (Colour::Red, other),
    };
    format!("  {:<12} on {}  {took:>5.1} s  {}", hook.phase, hook.on, screen.paint(colour, how))
}
