//! The table of an event's hooks.

use super::super::moments;
use super::super::page::{Span, TextBuilder, faint, green, plain, red, yellow};
use super::super::text::OutputContext;
use allclear_server::replica::view::hook_label;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// The hooks begun so far, and the hooks to come.
pub(super) fn table(page: &mut TextBuilder, reader: &OutputContext, event: &shown::Event) {
    let left_out =
        |step: &&shown::DrillStep| matches!(step.result.as_str(), "not_run" | "would_run" | "not_waited_for");
    let left_out: Vec<_> = event.drill.iter().flat_map(|drill| &drill.steps).filter(left_out).collect();
    let has_none = event.hooks.is_empty() && event.hooks_to_come.is_empty() && event.skipped_hooks.is_empty();
    if has_none && left_out.is_empty() {
        return;
    }
    page.heading("HOOKS");
    let mut rows = vec![["HOOK", "WORKLOAD", "RUNS ON", "OUTCOME", ""].map(faint).to_vec()];
    for hook in &event.hooks {
        let name = hook_label(&hook.hook, &hook.phase);
        let name = if hook.intent == "run" { name.into() } else { format!("{name} ({})", hook.intent) };
        rows.push(vec![
            plain(name),
            plain(format!("{}/{}", hook.vm, hook.workload)),
            plain(&hook.on),
            outcome(hook),
            plain(course(reader, hook)),
        ]);
    }
    if !event.hooks.is_empty() {
        page.table(2, &rows);
    }
    for step in left_out {
        let shown::DrillStep { workload, vm, result, .. } = step;
        let hook = hook_label(&step.hook, &step.phase);
        let reason = step.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        page.line(2, &[faint(format!("{hook} of {workload} on {vm}: {}{reason}", result.replace('_', " ")))]);
    }
    for skipped in &event.skipped_hooks {
        page.line(2, &[faint(moments::within(reader.now, skipped))]);
    }
    if !event.hooks_to_come.is_empty() {
        page.line(2, &[faint(format!("to come: {}", event.hooks_to_come.join(", ")))]);
    }
}

fn outcome(hook: &shown::Hook) -> Span {
    match hook.outcome.as_deref() {
        None => yellow("running"),
        Some("done" | "not_applicable") => green(hook.outcome.as_deref().unwrap_or_default()),
        Some(word) => red(word),
    }
}

/// What follows the attempt, and how the attempt went.
fn course(reader: &OutputContext, hook: &shown::Hook) -> String {
    let then = hook.afterwards.as_ref().map(|then| format!("{}; ", moments::within(reader.now, then)));
    format!("{}{}", then.unwrap_or_default(), how(reader, hook))
}

fn how(reader: &OutputContext, hook: &shown::Hook) -> String {
    // A done hook has no reason, and may have reported its actions, or in a dry run the planned actions.
    let said = || hook.reason.as_ref().or(hook.progress.as_ref()).filter(|said| !said.is_empty());
    let reason = || said().map(|said| format!(": {}", moments::within(reader.now, said))).unwrap_or_default();
    let often = hook.blocked_times.filter(|times| *times > 1 && hook.outcome.as_deref() == Some("blocked"));
    if let (Some(times), Some(since)) = (often, &hook.blocked_since) {
        return format!("{times} times since {}{}", moments::written(reader.now, since), reason());
    }
    if let Some(ended) = &hook.ended_at {
        return format!("{}{}", moments::written(reader.now, ended), reason());
    }
    let since = moments::written(reader.now, &hook.started_at);
    let expected =
        hook.expected_end.as_ref().map(|at| format!("expects to end {}; ", moments::written(reader.now, at)));
    let deadline = moments::written(reader.now, &hook.deadline);
    let progress = hook.progress.as_ref().filter(|said| !said.is_empty());
    let progress = progress.map(|said| format!("; progress: {}", moments::within(reader.now, said)));
    format!("since {since}; {}stopped at {deadline}{}", expected.unwrap_or_default(), progress.unwrap_or_default())
}
