//! A forecast as text for people.

use core::time::Duration;

use super::PolicyReport;
use super::forecast::{Forecast, ForecastRun};
use super::why::length;
use crate::cli::output::page::{Terminal, TextBuilder, plain};

/// Width of the names at the left.
const NAMES: usize = 12;

pub(super) fn report(report: &PolicyReport) -> String {
    let mut page = TextBuilder::new(Terminal::of_stdout());
    page.line(0, &[plain(format!("the events are first seen at {}, and every replica is healthy", report.at))]);
    for case in &report.cases {
        page.blank();
        page.line(0, &[plain(&case.name)]);
        if !case.about.is_empty() {
            page.line(2, &[plain(&case.about)]);
        }
        if let Some(why) = &case.skipped {
            page.line(2, &[plain(format!("not tried: {why}"))]);
        }
        for event in &case.events {
            forecast(&mut page, event);
        }
    }
    page.into_text()
}

fn forecast(page: &mut TextBuilder, event: &Forecast) {
    let duration =
        u64::try_from(event.duration_s).map_or("of unknown duration".into(), |s| length(Duration::from_secs(s)));
    let not_before = event.not_before.as_deref().unwrap_or("unknown");
    page.blank();
    let vms = event.resources.join(", ");
    page.line(2, &[plain(format!("{} by {} of {vms}, {duration}", event.r#type, event.source))]);
    let mut field = |name: &str, value: &str| page.entry(4, name, NAMES, &[plain(value)]);
    field("event", &event.id);
    field("status", &format!("{}, not before {not_before}", event.status));
    field("treatment", event.treatment);
    field("rule", &format!("{}: {}", event.rule, event.matched.join("; ")));
    for passed in &event.passed_over {
        field("", &format!("not {}: {}", passed.rule, passed.because));
    }
    if event.treatment == "prepare" {
        let budget = event.budget_s.map_or("none".into(), |seconds| length(Duration::from_secs_f64(seconds)));
        field("phases", &event.phases.join(", "));
        field("prepared", &format!("from {} to {}", event.preparation_starts, event.preparation_ends));
        field("budget", &budget);
        for (place, run) in event.hooks.iter().enumerate() {
            field(if place == 0 { "hooks" } else { "" }, &hook(run));
        }
        for (place, not) in event.left_out.iter().enumerate() {
            let what = format!("{} of {} on {}: {}", not.phase, not.workload, not.vm, not.why);
            field(if place == 0 { "left out" } else { "" }, &what);
        }
    }
    let waits = event.waits_for.as_ref().map_or("nothing", |blocker| &blocker.message);
    field("waits for", waits);
    field("in the end", &event.in_the_end);
}

fn hook(run: &ForecastRun) -> String {
    let ForecastRun { turn, phase, workload, vm, on, .. } = run;
    let place = if on == vm { String::new() } else { format!(", on {on}") };
    let timeout = length(Duration::from_secs_f64(run.timeout_s));
    let until = run.deadline.as_ref().map_or(format!("{timeout} at most"), |deadline| format!("until {deadline}"));
    format!("{turn}. {phase:<10} of {workload} on {vm}{place}, {until}, on failure: {}", run.on_failure)
}
