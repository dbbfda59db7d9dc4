//! A hook over HTTP: one POST, then queries of its progress until it has ended. A cancelled hook notifies the server, and
//! counts as stopped only if the server acknowledges that.

use std::ops::ControlFlow::{Break, Continue};
use std::sync::OnceLock;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

use super::answer::{self, HttpProgress};
use super::exchange;
use super::facts::Facts;
use super::server::HookServer;
use crate::hooks::HookOutcome;
use crate::http_client::header::CONTENT_TYPE;
use crate::http_client::{Method, Url};

/// The pause between two progress queries: at first, and at most.
const ASK_AFTER: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// The maximum of the pause requested by a server, so the end is noticed in time.
const ASK_AFTER_AT_MOST: Duration = Duration::from_secs(10);
/// The timeout of one query.
const PATIENCE: Duration = Duration::from_secs(10);
/// There are 5 s between SIGTERM and SIGKILL.
const CANCEL_WITHIN: Duration = Duration::from_secs(3);
/// A smaller change of the expected end is not reported.
const NEWS_FROM: Duration = Duration::from_secs(2);

pub(super) async fn run(server: &HookServer, facts: &Facts) -> HookOutcome {
    let mut terminate = match signal(SignalKind::terminate()) {
        Ok(terminate) => terminate,
        Err(error) => return HookOutcome::Blocked(format!("nothing was sent: {error}")),
    };
    let job = OnceLock::new();
    tokio::select! {
        biased;
        _ = terminate.recv() => cancel(server, facts, job.get()).await,
        ended = ask(server, facts, &job) => ended,
    }
}

async fn cancel(server: &HookServer, facts: &Facts, job: Option<&Url>) -> HookOutcome {
    let Some(job) = job else {
        return HookOutcome::Unknown("cancelled before the answer of the server, which may go on".to_owned());
    };
    let cancel = server.request(Method::DELETE, job.clone()).headers(facts.headers());
    answer::to_the_cancellation(exchange(cancel, CANCEL_WITHIN).await)
}

async fn ask(server: &HookServer, facts: &Facts, job: &OnceLock<Url>) -> HookOutcome {
    let post = server.request(Method::POST, server.url.clone()).headers(facts.headers());
    let post = post.header(CONTENT_TYPE, "application/json").body(facts.body());
    match answer::to_the_post(exchange(post, facts.time_left()).await) {
        Break(ended) => ended,
        Continue(location) => match server.own(&location) {
            Ok(url) => follow(server, facts, job.get_or_init(|| url)).await,
            Err(reason) => HookOutcome::Unknown(reason),
        },
    }
}

/// Polls the job until the job has ended, or the time is over.
async fn follow(server: &HookServer, facts: &Facts, job: &Url) -> HookOutcome {
    let (mut pause, longest) = ASK_AFTER;
    let mut listener = ProgressReporter::default();
    while !facts.time_left().is_zero() {
        sleep(pause.min(facts.time_left())).await;
        pause = (pause * 2).min(longest);
        let question = server.request(Method::GET, job.clone()).headers(facts.headers());
        match answer::how_far(exchange(question, PATIENCE.min(facts.time_left())).await) {
            Break(ended) => return ended,
            Continue(told) => {
                pause = told.retry_after.map_or(pause, |wanted| wanted.clamp(pause, ASK_AFTER_AT_MOST));
                listener.hear(server, told);
            }
        }
    }
    HookOutcome::Unknown("the hook had not ended by its deadline".to_owned())
}

/// Reports changes only: each report is an entry of the log.
#[derive(Default)]
struct ProgressReporter {
    progress: Option<String>,
    expected_end: Option<Instant>,
}

impl ProgressReporter {
    fn hear(&mut self, server: &HookServer, told: HttpProgress) {
        if let Some(progress) = told.progress.filter(|progress| self.progress.as_ref() != Some(progress)) {
            server.say("progress", &progress);
            self.progress = Some(progress);
        }
        let Some(span) = told.expected_end else { return };
        let Some(end) = Instant::now().checked_add(span) else { return };
        let moved = |known: Instant| known.max(end).duration_since(known.min(end)) >= NEWS_FROM;
        if self.expected_end.is_none_or(moved) {
            server.say("expect", span.as_secs_f64());
            self.expected_end = Some(end);
        }
    }
}
