//! Findings of the `check` hooks of this VM's workloads.

use super::super::hook::{One, all};
use super::finding::Finding;
use allclear_core::model::document::EventType;
use allclear_core::model::drill::Mode;
use allclear_core::model::id::VmName;
use allclear_core::model::workload::{Intent, Phase};
use allclear_server::config::Config;
use allclear_server::hooks::{HookOutcome, one_line};

const CHECK: &str = "database";

/// Runs the hooks one after the other: each hook queries all members of its group.
pub(super) async fn findings(config: &Config, name: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in all(config, &VmName::new(name)).filter(|one| one.hook.registered.phase == Phase::Check) {
        findings.extend(of(&one).await);
    }
    findings
}

async fn of(one: &One<'_>) -> Vec<Finding> {
    let task = one.task(Intent::Run, Mode::DryRun, EventType::Reboot);
    let name = one.name();
    let advice = || format!("repair the fault, and check again: `allclear hook run --config FILE {name}`");
    let shown = match one.try_it(&task, std::future::pending(), |_| ()).await {
        Ok(shown) => shown,
        Err(why) => return vec![Finding::fail(CHECK, format!("{name} cannot be run: {why}"), advice())],
    };
    match &shown.answer {
        HookOutcome::Done | HookOutcome::NotApplicable => {
            let doubts = shown.stdout.lines().filter_map(|line| line.strip_prefix("progress:"));
            let advice = "no hook fails on this; the README of the hook set says more";
            let doubts =
                doubts.map(|doubt| Finding::warn(CHECK, format!("{name}: {}", one_line(doubt.trim())), advice));
            let found: Vec<_> = doubts.collect();
            if found.is_empty() { vec![Finding::ok(CHECK, format!("{name}: the check found no fault"))] } else { found }
        }
        answer => {
            // Each line is one problem; the last line, or the only line, is the reason.
            let lines: Vec<&str> = shown.stderr.lines().filter(|line| !line.trim().is_empty()).collect();
            let told = if lines.len() > 1 { &lines[..lines.len() - 1] } else { &lines[..] };
            let found = told.iter().map(|line| Finding::fail(CHECK, format!("{name}: {}", one_line(line)), advice()));
            let found: Vec<_> = found.collect();
            if found.is_empty() { vec![Finding::fail(CHECK, format!("{name}: {answer}"), advice())] } else { found }
        }
    }
}
