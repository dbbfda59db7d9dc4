//! What came of a demo, for people and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::primary::Move;
use super::story::names;
use super::takeover::Takeover;
use super::verdict;
use super::writes::Writes;
use crate::cli::demo_hook::Note;
use crate::cli::stage::moment::{read, seconds};
use crate::cli::stage::sight::Sight;
use crate::fake_cloud::Post;
use crate::machine::time::Timestamp;
use crate::simulator::cloud::{Approver, End, Event};
use crate::wire::pb::allclear::operator::v1 as shown;

#[derive(Serialize)]
pub(super) struct Report {
    pub(super) scenario: String,
    pub(super) speed: u32,
    pub(super) ok: bool,
    /// What should have been and was not.
    pub(super) missing: Vec<String>,
    pub(super) events: Vec<EventReport>,
    /// The way of the primary in words, where there is a database.
    #[serde(skip)]
    pub(super) primary: Option<String>,
    pub(super) moves: Vec<Move>,
    /// Where clients write to real servers.
    pub(super) writes: Option<Writes>,
    pub(super) takeover: Option<Takeover>,
    /// Kept because something went wrong.
    pub(super) folder: Option<String>,
}

#[derive(Serialize)]
pub(super) struct EventReport {
    pub(super) id: String,
    pub(super) r#type: String,
    pub(super) source: String,
    pub(super) resources: Vec<String>,
    pub(super) stage: String,
    pub(super) treatment: Option<String>,
    pub(super) rule: Option<String>,
    pub(super) outcome: Option<String>,
    pub(super) start_cause: Option<String>,
    /// Finished or cancelled, as the cloud says.
    pub(super) platform: Option<&'static str>,
    pub(super) hooks: Vec<HookReport>,
    pub(super) approvals: Vec<shown::Approval>,
    /// Whose approval the cloud took.
    pub(super) approved_by: Option<String>,
    pub(super) posts_received: usize,
    pub(super) posts_taken: usize,
    pub(super) announced_at: String,
    /// All of them in seconds.
    pub(super) announced_to_first_seen_s: Option<f64>,
    pub(super) announced_to_all_clear_s: Option<f64>,
    pub(super) last_hook_to_all_clear_s: Option<f64>,
    pub(super) announced_to_started_s: Option<f64>,
    pub(super) announced_to_ended_s: Option<f64>,
    pub(super) announced_to_closed_s: Option<f64>,
    pub(super) timeline: Vec<shown::Step>,
}

#[derive(Serialize)]
pub(super) struct HookReport {
    pub(super) workload: String,
    pub(super) vm: String,
    pub(super) on: String,
    pub(super) phase: String,
    pub(super) intent: String,
    pub(super) outcome: Option<String>,
    pub(super) took_s: Option<f64>,
    /// How often the hook program was really started for this attempt; what dials in is as often as the record says.
    pub(super) begun: usize,
}

impl EventReport {
    pub(super) fn of(event: &Event, posts: &[Post], sight: &Sight, notes: &[Note]) -> Self {
        let known = sight.event(&event.id).cloned().unwrap_or_default();
        let from = event.announced_at;
        let entered =
            |stage: &str| known.timeline.iter().find(|step| step.what == stage).and_then(|step| read(&step.at));
        let posts: Vec<&Post> = posts.iter().filter(|post| post.event == event.id).collect();
        let all_clear = event.accepted.as_ref().map(|(at, _)| *at);
        let after = |at: Option<Timestamp>| at.map(|at| seconds(from, at));
        let hooks = known.hooks.iter().map(|hook| HookReport::of(hook, notes));
        Self {
            id: event.id.to_string(),
            r#type: event.plan.kind.to_string(),
            source: event.plan.source.to_string(),
            resources: event.plan.resources.iter().map(ToString::to_string).collect(),
            stage: known.stage.clone(),
            treatment: known.treatment.clone(),
            rule: known.rule.clone(),
            outcome: known.outcome.clone(),
            start_cause: known.start_cause.clone(),
            platform: event.ended.map(|(_, end)| match end {
                End::Finished => "finished",
                End::Cancelled => "cancelled",
            }),
            hooks: hooks.collect(),
            approvals: known.approvals.clone(),
            approved_by: event.accepted.as_ref().map(|(_, by)| match by {
                Approver::Vm(vm) => vm.to_string(),
                Approver::Other(who) => who.clone(),
            }),
            posts_received: posts.len(),
            posts_taken: posts.iter().filter(|post| post.took_effect).count(),
            announced_at: crate::replica::clock::rfc3339(from),
            announced_to_first_seen_s: after(known.timeline.first().and_then(|step| read(&step.at))),
            announced_to_all_clear_s: after(all_clear),
            last_hook_to_all_clear_s: last_hook(&known, notes).zip(all_clear).map(|(hook, at)| seconds(hook, at)),
            announced_to_started_s: after(event.started.map(|(at, _)| at)),
            announced_to_ended_s: after(event.ended.map(|(at, _)| at)),
            announced_to_closed_s: after(entered("closed")),
            timeline: known.timeline,
        }
    }
}

/// When the last hook that prepares was done, as the hook itself noted it.
fn last_hook(event: &shown::Event, notes: &[Note]) -> Option<Timestamp> {
    let attempts: Vec<&str> =
        event.hooks.iter().filter(|hook| verdict::prepares(hook)).map(|hook| hook.attempt.as_str()).collect();
    let done = notes.iter().filter(|note| note.done && attempts.contains(&note.attempt.as_str()));
    done.map(Note::at).max()
}

impl HookReport {
    fn of(hook: &shown::Hook, notes: &[Note]) -> Self {
        let ended = hook.ended_at.as_deref().and_then(read);
        Self {
            workload: hook.workload.clone(),
            vm: hook.vm.clone(),
            on: hook.on.clone(),
            phase: hook.phase.clone(),
            intent: hook.intent.clone(),
            outcome: hook.outcome.clone(),
            took_s: read(&hook.started_at).zip(ended).map(|(begun, ended)| seconds(begun, ended)),
            begun: notes.iter().filter(|note| !note.done && note.attempt == hook.attempt).count(),
        }
    }
}

impl Report {
    /// For people; each paragraph begins with an empty line.
    pub(super) fn told(&self) -> String {
        let mut text = String::new();
        for event in &self.events {
            event.tell(&mut text);
        }
        if let Some(takeover) = &self.takeover {
            line(&mut text, "");
            line(&mut text, &told_takeover(takeover));
        }
        if let Some(primary) = &self.primary {
            line(&mut text, "");
            line(&mut text, primary);
        }
        if let Some(writes) = &self.writes {
            line(&mut text, "");
            text.push_str(&writes.told());
        }
        line(&mut text, "");
        if self.ok {
            let given: usize = self.events.iter().map(|event| event.posts_taken).sum();
            let told = match given {
                0 => "All is well: there was nothing to approve, and nothing was approved.".to_owned(),
                1 => {
                    "All is well: one all-clear was given, after every hook was done, and all was restored.".to_owned()
                }
                more => {
                    format!("All is well: {more} all-clears, each given once, after its hooks, and all was restored.")
                }
            };
            line(&mut text, &told);
            match (&self.primary, &self.writes) {
                (Some(_), Some(_)) => line(&mut text, "The primary was never where a machine went down."),
                (Some(_), None) => {
                    let told =
                        "Every member of the database dialled in, and its primary was never where a machine went down.";
                    line(&mut text, told);
                }
                (None, _) => {}
            }
        }
        for missing in &self.missing {
            line(&mut text, &format!("MISSING: {missing}"));
        }
        if let Some(folder) = &self.folder {
            line(&mut text, &format!("Logs and configurations are left in {folder}"));
        }
        text
    }
}

impl EventReport {
    fn tell(&self, text: &mut String) {
        let or_nothing = |word: &Option<String>| word.clone().unwrap_or_else(|| "-".into());
        line(text, "");
        line(
            text,
            &format!(
                "{} by {} of {}: {}, start cause: {}; for the cloud it is {}",
                self.r#type,
                self.source,
                self.resources.join(", "),
                or_nothing(&self.outcome),
                or_nothing(&self.start_cause),
                self.platform.unwrap_or("still open")
            ),
        );
        for hook in &self.hooks {
            let took = hook.took_s.map_or_else(|| "-".into(), |took| format!("{took:.2} s"));
            let intent = if hook.intent == "run" { String::new() } else { format!(" ({})", hook.intent) };
            let outcome = or_nothing(&hook.outcome);
            line(text, &format!("  {:<12} on {:<8} {took:>8}  {outcome}{intent}", hook.phase, hook.on));
        }
        for approval in &self.approvals {
            let outcome = or_nothing(&approval.outcome);
            line(
                text,
                &format!(
                    "  {:<12} by {:<8} {:>8}  {outcome} ({})",
                    "all-clear", approval.approver, "", approval.reason
                ),
            );
        }
        let posts = if self.posts_received == 1 { "POST" } else { "POSTs" };
        line(text, &format!("  the cloud received {} {posts} and took {}", self.posts_received, self.posts_taken));
        let spans = [
            ("announcement to first sight", self.announced_to_first_seen_s),
            ("announcement to all-clear", self.announced_to_all_clear_s),
            ("last hook to all-clear", self.last_hook_to_all_clear_s),
            ("announcement to start", self.announced_to_started_s),
            ("announcement to end", self.announced_to_ended_s),
            ("announcement to closed", self.announced_to_closed_s),
        ];
        for (what, took) in spans {
            if let Some(took) = took {
                line(text, &format!("  {what:<28} {took:>7.2} s"));
            }
        }
    }
}

fn told_takeover(takeover: &Takeover) -> String {
    let Takeover { old_leader, during, new_leader, led_after_s, restarted_after_s, .. } = takeover;
    let led = new_leader.as_ref().zip(*led_after_s);
    let led = led.map_or_else(|| "nobody took over".into(), |(who, after)| format!("{who} led after {after:.2} s"));
    let back = restarted_after_s.map_or_else(String::new, |after| format!("; it was started again after {after:.2} s"));
    format!("{old_leader}, the leader, was killed during {during}: {led}{back}")
}

fn line(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

/// An event in a few words, for messages.
pub(super) fn called(event: &Event) -> String {
    format!("{} of {}", event.plan.kind, names(&event.plan.resources))
}
