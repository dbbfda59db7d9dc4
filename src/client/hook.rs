//! A hook of a workload, with its handlers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::outcome::Outcome;
use super::step::{Step, millis};
use allclear_wire::pb::allclear::workload::v1::{self, OnFailure, Phase, RunsOn};

pub(super) type Handler = Arc<dyn Fn(Step) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// The return type of a handler: a future of an outcome, or of a type that converts into an outcome.
pub trait HandlerFuture: Future<Output: Into<Outcome>> + Send + 'static {}

impl<A: Future<Output: Into<Outcome>> + Send + 'static> HandlerFuture for A {}

/// A handler with an argument that all handlers share:
/// `Hook::new(Phase::Restore, with(&database, Database::rejoin))`, where `rejoin` takes the `Arc` and the step.
pub fn with<S, F, A>(shared: &Arc<S>, handler: F) -> impl Fn(Step) -> A + Send + Sync + use<S, F, A>
where
    S: Send + Sync + 'static,
    F: Fn(Arc<S>, Step) -> A + Send + Sync + 'static,
{
    let shared = shared.clone();
    move |step| handler(shared.clone(), step)
}

/// One hook of a phase. Settings that are left out have the replica's default.
pub struct Hook {
    pub(super) told: v1::Hook,
    pub(super) run: Handler,
    pub(super) confirm: Option<Handler>,
    pub(super) undo: Option<Handler>,
    pub(super) dry_run: Option<Handler>,
}

impl Hook {
    /// `run` has the effect. `run` may be called again after an outcome other than done.
    pub fn new<A: HandlerFuture>(phase: Phase, run: impl Fn(Step) -> A + Send + Sync + 'static) -> Self {
        let told = v1::Hook { phase: phase.into(), ..v1::Hook::default() };
        Self { told, run: handler(run), confirm: None, undo: None, dry_run: None }
    }

    /// `confirm` checks whether the hook's effect is present, changes nothing, and answers done, not done or unknown.
    /// Give a failover a `confirm`: without `confirm` a failover with an unknown outcome has failed. Any other hook runs
    /// again.
    #[must_use]
    pub fn confirm<A: HandlerFuture>(mut self, confirm: impl Fn(Step) -> A + Send + Sync + 'static) -> Self {
        self.confirm = Some(handler(confirm));
        self.told.can_confirm = true;
        self
    }

    /// `undo` reverses the effect of `run`.
    #[must_use]
    pub fn undo<A: HandlerFuture>(mut self, undo: impl Fn(Step) -> A + Send + Sync + 'static) -> Self {
        self.undo = Some(handler(undo));
        self.told.can_undo = true;
        self
    }

    /// `dry_run` reports the effect of `run` in a dry run, and changes nothing. Without `dry_run` the hook is left
    /// out of dry runs, and `run` is never called for a dry run. A hook of `Phase::Check` needs no `dry_run`: it changes
    /// nothing, runs in dry runs only, and `run` is called.
    #[must_use]
    pub fn dry_run<A: HandlerFuture>(mut self, dry_run: impl Fn(Step) -> A + Send + Sync + 'static) -> Self {
        self.dry_run = Some(handler(dry_run));
        self.told.can_dry_run = true;
        self
    }

    /// The name that identifies the hook when its position differs in another version: unique in its phase, of
    /// letters, digits, `-` or `_`, and no number.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.told.name = Some(name.into());
        self
    }

    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.told.timeout_ms = Some(millis(timeout));
        self
    }

    /// The longest time that the hook takes.
    #[must_use]
    pub fn worst(mut self, worst: Duration) -> Self {
        self.told.worst_ms = Some(millis(worst));
        self
    }

    /// The maximum number of attempts.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.told.attempts = Some(attempts);
        self
    }

    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.told.on_failure = on_failure.into();
        self
    }

    #[must_use]
    pub fn runs_on(mut self, runs_on: RunsOn) -> Self {
        self.told.runs_on = runs_on.into();
        self
    }

    /// The hook is skipped for freezes that are known to be shorter.
    #[must_use]
    pub fn min_freeze(mut self, min_freeze: Duration) -> Self {
        self.told.min_freeze_ms = Some(millis(min_freeze));
        self
    }

    /// A `done` older than this is confirmed again before the all-clear. Needs `confirm`.
    #[must_use]
    pub fn fresh_for(mut self, fresh_for: Duration) -> Self {
        self.told.fresh_for_ms = Some(millis(fresh_for));
        self
    }

    /// The hook is left out when the notice is shorter than `worst`.
    #[must_use]
    pub fn optional_if_short(mut self) -> Self {
        self.told.optional_if_short = true;
        self
    }

    /// The hook runs only once at a time in the cluster.
    #[must_use]
    pub fn exclusive(mut self) -> Self {
        self.told.exclusive = true;
        self
    }

    /// The types of events for which the hook runs; by default all types.
    #[must_use]
    pub fn event_types<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.told.event_types = types.into_iter().map(Into::into).collect();
        self
    }
}

fn handler<A: HandlerFuture>(function: impl Fn(Step) -> A + Send + Sync + 'static) -> Handler {
    Arc::new(move |step| function(step).map(Into::into).boxed())
}
