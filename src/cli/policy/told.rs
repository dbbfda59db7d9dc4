//! A forecast as text for people.

use core::time::Duration;
use std::fmt::Write as _;

use super::forecast::{Forecast, Run};
use super::why::length;
use super::{Case, Report};

pub(super) fn report(report: &Report) -> String {
    let mut text = format!("first seen at {}, every replica well\n", report.at);
    for case in &report.cases {
        self::case(&mut text, case);
    }
    text
}

fn case(text: &mut String, case: &Case) {
    line(text, "");
    line(text, &case.name);
    if !case.about.is_empty() {
        line(text, &format!("  {}", case.about));
    }
    if let Some(why) = &case.skipped {
        line(text, &format!("  not tried: {why}"));
    }
    for event in &case.events {
        forecast(text, event);
    }
}

fn forecast(text: &mut String, event: &Forecast) {
    let duration =
        u64::try_from(event.duration_s).map_or("of unknown duration".into(), |s| length(Duration::from_secs(s)));
    let not_before = event.not_before.as_deref().unwrap_or("unknown");
    line(text, "");
    line(text, &format!("  {} by {} of {}, {duration}", event.r#type, event.source, event.resources.join(", ")));
    field(text, "event", &event.id);
    field(text, "status", &format!("{}, not before {not_before}", event.status));
    field(text, "treatment", event.treatment);
    field(text, "rule", &format!("{}: {}", event.rule, event.matched.join("; ")));
    for passed in &event.passed_over {
        field(text, "", &format!("not {}: {}", passed.rule, passed.because));
    }
    if event.treatment == "prepare" {
        let budget = event.budget_s.map_or("none".into(), |seconds| length(Duration::from_secs_f64(seconds)));
        field(text, "phases", &event.phases.join(", "));
        field(text, "prepared", &format!("from {} to {}", event.preparation_starts, event.preparation_ends));
        field(text, "budget", &budget);
        for (place, run) in event.hooks.iter().enumerate() {
            field(text, if place == 0 { "hooks" } else { "" }, &hook(run));
        }
        for (place, not) in event.left_out.iter().enumerate() {
            let what = format!("{} of {} on {}: {}", not.phase, not.workload, not.vm, not.why);
            field(text, if place == 0 { "left out" } else { "" }, &what);
        }
    }
    let waits = event.waits_for.as_ref().map_or("nothing", |blocker| &blocker.message);
    field(text, "waits for", waits);
    field(text, "in the end", &event.in_the_end);
}

fn hook(run: &Run) -> String {
    let Run { turn, phase, workload, vm, on, .. } = run;
    let place = if on == vm { String::new() } else { format!(", on {on}") };
    let timeout = length(Duration::from_secs_f64(run.timeout_s));
    let until = run.deadline.as_ref().map_or(format!("{timeout} at most"), |deadline| format!("until {deadline}"));
    let held = run.held_until.as_ref().map_or(String::new(), |at| format!(", waits for room until {at}"));
    format!("{turn}. {phase:<10} of {workload} on {vm}{place}{held}, {until}, on failure: {}", run.on_failure)
}

fn field(text: &mut String, name: &str, value: &str) {
    line(text, &format!("    {name:<11} {value}"));
}

fn line(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}
