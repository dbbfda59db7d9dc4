//! The result of a demo, for people and as JSON.

use serde::Serialize;

use super::checks;
use super::narration::names;
use super::primary::PrimaryMove;
use super::takeover::TakeoverDemo;
use super::writes::Writes;
use crate::fake_cloud::Post;
use crate::local_cluster::seconds;
use crate::local_cluster::snapshot::ClusterSnapshot;
use allclear_cloud::{EventEnd, PlatformEvent};
use allclear_core::model::time::Timestamp;
use allclear_server::replica::clock::from_rfc3339;
use allclear_wire::pb::allclear::operator::v1 as shown;

#[derive(Serialize)]
pub(super) struct DemoReport {
    pub(super) scenario: String,
    pub(super) speed: u32,
    pub(super) ok: bool,
    /// Expectations that were not met.
    pub(super) missing: Vec<String>,
    pub(super) events: Vec<EventReport>,
    /// The way of the primary in words, where there is a database.
    #[serde(skip)]
    pub(super) primary: Option<String>,
    pub(super) moves: Vec<PrimaryMove>,
    /// Where clients write to real servers.
    pub(super) writes: Option<Writes>,
    pub(super) takeover: Option<TakeoverDemo>,
    /// The folder that is kept after a failure.
    pub(super) folder: Option<String>,
}

#[derive(Serialize)]
pub(super) struct EventReport {
    #[serde(skip)]
    called: String,
    /// The event as known to the cluster.
    #[serde(flatten)]
    known: shown::Event,
    /// Finished or cancelled, as recorded by the cloud.
    platform: Option<&'static str>,
    posts_received: usize,
    posts_taken: usize,
    announced_to_all_clear_s: Option<f64>,
    last_hook_to_all_clear_s: Option<f64>,
    announced_to_closed_s: Option<f64>,
}

impl EventReport {
    pub(super) fn of(event: &PlatformEvent, posts: &[Post], sight: &ClusterSnapshot) -> Self {
        let known = sight.event(&event.id).cloned().unwrap_or_default();
        let posts: Vec<&Post> = posts.iter().filter(|post| post.event == event.id).collect();
        let all_clear = event.accepted.as_ref().map(|(at, _)| *at);
        let after = |at: Option<Timestamp>| at.map(|at| seconds(event.announced_at, at));
        let closed = known.timeline.iter().find(|step| step.what == "closed");
        let prepared = known.hooks.iter().filter(|hook| checks::prepares(hook));
        let last_hook = prepared.filter_map(|hook| from_rfc3339(hook.ended_at.as_deref()?)).max();
        Self {
            called: format!("{} by {} of {}", event.plan.kind, event.plan.source, names(&event.plan.resources)),
            platform: event.ended.map(|(_, end)| match end {
                EventEnd::Finished => "finished",
                EventEnd::Cancelled => "cancelled",
            }),
            posts_received: posts.len(),
            posts_taken: posts.iter().filter(|post| post.took_effect).count(),
            announced_to_all_clear_s: after(all_clear),
            last_hook_to_all_clear_s: last_hook.zip(all_clear).map(|(hook, at)| seconds(hook, at)),
            announced_to_closed_s: after(closed.and_then(|step| from_rfc3339(&step.at))),
            known,
        }
    }

    fn told(&self) -> Vec<String> {
        let or_nothing = |word: &Option<String>| word.clone().unwrap_or_else(|| "-".into());
        let (outcome, cause) = (or_nothing(&self.known.outcome), or_nothing(&self.known.start_cause));
        let platform = self.platform.unwrap_or("still open");
        let mut lines = vec![
            String::new(),
            format!("{}: {outcome}, start cause: {cause}; the fake cloud's record: {platform}", self.called),
        ];
        for hook in &self.known.hooks {
            let ended = hook.ended_at.as_deref().and_then(from_rfc3339);
            let took = from_rfc3339(&hook.started_at).zip(ended);
            let took = took.map_or_else(|| "-".into(), |(begun, ended)| format!("{:.2} s", seconds(begun, ended)));
            let intent = if hook.intent == "run" { String::new() } else { format!(" ({})", hook.intent) };
            let outcome = or_nothing(&hook.outcome);
            lines.push(format!("  {:<12} on {:<8} {took:>8}  {outcome}{intent}", hook.phase, hook.on));
        }
        for approval in &self.known.approvals {
            let outcome = or_nothing(&approval.outcome);
            lines.push(format!("  all-clear    by {:<17}  {outcome} ({})", approval.approver, approval.reason));
        }
        let Self { posts_received, posts_taken, .. } = self;
        lines.push(format!("  approvals received by the fake cloud: {posts_received}, and accepted: {posts_taken}"));
        let spans = [
            ("announcement to all-clear", self.announced_to_all_clear_s),
            ("last hook to all-clear", self.last_hook_to_all_clear_s),
            ("announcement to closed", self.announced_to_closed_s),
        ];
        let told = |(what, took): (&str, Option<f64>)| Some(format!("  {what:<28} {:>7.2} s", took?));
        lines.extend(spans.into_iter().filter_map(told));
        lines
    }
}

impl DemoReport {
    /// The report as text for people; each paragraph begins with an empty line.
    pub(super) fn told(&self) -> String {
        let mut lines: Vec<String> = self.events.iter().flat_map(EventReport::told).collect();
        let more = [self.takeover.as_ref().map(TakeoverDemo::told), self.primary.clone()];
        for told in more.into_iter().flatten().chain(self.writes.as_ref().map(Writes::told)) {
            lines.extend([String::new(), told]);
        }
        lines.push(String::new());
        if self.ok {
            lines.push(match self.events.iter().map(|event| event.posts_taken).sum::<usize>() {
                0 => "All is well: there was nothing to approve, and nothing was approved.".to_owned(),
                1 => "All is well: one all-clear was given after all hooks, and all was restored.".to_owned(),
                more => {
                    format!("All is well: {more} all-clears, each given once, after the hooks, and all was restored.")
                }
            });
            if self.primary.is_some() {
                lines.push("The primary was never on a machine that went down.".into());
            }
        }
        lines.extend(self.missing.iter().map(|missing| format!("MISSING: {missing}")));
        let is_too_late = |event: &EventReport| event.known.start_cause.as_deref() == Some("notice_expired");
        if !self.ok && self.events.iter().any(is_too_late) {
            lines.push(
                "The notice ended before the hooks were done: this machine is slow or busy. Try a longer notice, with \
                 --notice 2m"
                    .into(),
            );
        }
        lines.extend(self.folder.iter().map(|folder| format!("Logs and configurations are left in {folder}")));
        lines.join("\n") + "\n"
    }
}
