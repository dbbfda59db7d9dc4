//! Counters of this replica. The sum over all replicas is the cluster's count. Every label has a fixed set of values,
//! and each series exists from the start, which makes the first count visible as a rise.

mod excess;
mod labels;
mod metadata_failure;
mod refusals;
mod refused_registrations;
mod registration;
mod vm_name;

use prometheus::proto::MetricFamily;
use prometheus::{Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry};
use std::time::Duration;
use tokio::sync::broadcast;

pub use self::excess::Excess;
pub use self::labels::{DeliveryLabel, ExportLabel, RefusalKind, TakeoverLevel};
use self::metadata_failure::MetadataFailure;
pub use self::refusals::RefusalCounts;
use self::refused_registrations::RefusedRegistrations;
use self::registration::registered;
use self::vm_name::VmNameCheck;
use super::clock;
use allclear_core::model::attempt::Outcome;
use allclear_core::model::claim::{PostOutcome, Reason};
use allclear_core::model::notification::NotificationKind;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::Phase;

/// Seconds. Hooks have minutes at most.
const HOOK_BUCKETS: [f64; 13] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];
/// Seconds. A notice may be long.
const APPROVAL_BUCKETS: [f64; 14] =
    [0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 1800.0, 3600.0, 14400.0];

/// The number of takeovers kept for subscribers.
const RUNGS_KEPT: usize = 16;

/// The counters of a replica, which begin at zero with the replica's process.
pub struct Metrics {
    registry: Registry,
    approvals: IntCounterVec,
    hook_attempts: IntCounterVec,
    hook_durations: HistogramVec,
    announce_to_approval: Histogram,
    takeovers: IntCounterVec,
    polls: IntCounterVec,
    last_document_at: Gauge,
    journal_failures: IntCounter,
    notices: IntCounterVec,
    trace_exports: IntCounterVec,
    takeover_levels: broadcast::Sender<TakeoverLevel>,
    pub refusals: RefusalCounts,
    pub excess: Excess,
    pub vm_name: VmNameCheck,
    pub metadata_failure: MetadataFailure,
    pub refused_registrations: RefusedRegistrations,
}

fn tell_its_start(registry: &Registry) -> prometheus::Result<()> {
    let started_at = Gauge::new("allclear_start_timestamp_seconds", "The start of the process of this replica.")?;
    registered(registry, started_at)?.set(seconds(clock::now()));
    Ok(())
}

fn approvals() -> HistogramOpts {
    let help = "The time from the first sight of an event to Azure's acceptance of this replica's approval.";
    HistogramOpts::new("allclear_announce_to_approval_seconds", help)
}

fn last_document_at() -> prometheus::Result<Gauge> {
    Gauge::new(
        "allclear_metadata_last_success_timestamp_seconds",
        "The time of the last validated document of the metadata endpoint; 0 before the first document.",
    )
}

fn hook_durations() -> HistogramOpts {
    HistogramOpts::new("allclear_hook_duration_seconds", "From the log entry of an attempt to its end.")
}

impl Metrics {
    pub fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        tell_its_start(&registry)?;
        let counters =
            |name, help, labels: &[&str]| registered(&registry, IntCounterVec::new(Opts::new(name, help), labels)?);
        let metrics = Self {
            approvals: counters(
                "allclear_approvals_total",
                "Approvals that this replica was assigned or gave alone, by outcome of the post.",
                &["reason", "outcome"],
            )?,
            hook_attempts: counters(
                "allclear_hook_attempts_total",
                "Attempts of hooks that ended on this replica, by outcome.",
                &["phase", "outcome"],
            )?,
            hook_durations: registered(
                &registry,
                HistogramVec::new(hook_durations().buckets(HOOK_BUCKETS.into()), &["phase"])?,
            )?,
            announce_to_approval: registered(
                &registry,
                Histogram::with_opts(approvals().buckets(APPROVAL_BUCKETS.into()))?,
            )?,
            takeovers: counters(
                "allclear_takeovers_total",
                "Takeovers by this replica: 2 the leader was unreachable, 3 the leader's metadata channel was \
                 stalled, 4 this replica approved alone without a quorum.",
                &["rung"],
            )?,
            polls: counters(
                "allclear_metadata_polls_total",
                "Requests to the metadata endpoint, by answer; `document` is a valid answer.",
                &["result"],
            )?,
            last_document_at: registered(&registry, last_document_at()?)?,
            journal_failures: registered(
                &registry,
                IntCounter::new(
                    "allclear_journal_failures_total",
                    "Failed writes of the journal of isolated approvals; the approval of a failed write is not posted.",
                )?,
            )?,
            notices: counters(
                "allclear_notices_total",
                "Attempts of this replica to deliver a notification; failed deliveries are retried, refused and \
                 expired notifications are not.",
                &["topic", "outcome"],
            )?,
            trace_exports: counters(
                "allclear_trace_exports_total",
                "Traces of events that this replica exports, by outcome.",
                &["outcome"],
            )?,
            takeover_levels: broadcast::Sender::new(RUNGS_KEPT),
            refusals: RefusalCounts::new(&registry)?,
            excess: Excess::new(&registry)?,
            vm_name: VmNameCheck::new(&registry)?,
            metadata_failure: MetadataFailure::default(),
            refused_registrations: RefusedRegistrations::default(),
            registry,
        };
        metrics.begin_at_zero();
        Ok(metrics)
    }

    /// The present values of all metrics.
    pub fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }

    /// Counts the outcome of an approval assigned to this replica, or of an isolated approval. `since_seen` is counted
    /// from the first sight of the event.
    pub fn approval(&self, reason: Reason, outcome: &PostOutcome, since_seen: Option<Duration>) {
        self.approvals.with_label_values(&[reason.as_str(), outcome.as_str()]).inc();
        if let Some(span) = since_seen.filter(|_| *outcome == PostOutcome::Accepted) {
            self.announce_to_approval.observe(span.as_secs_f64());
        }
    }

    /// Counts an attempt that ended on this replica. The duration of a cancelled attempt is not recorded: it does not
    /// show how long the hook takes.
    pub fn hook(&self, phase: Phase, outcome: &Outcome, took: Duration) {
        let phase = phase.as_str();
        self.hook_attempts.with_label_values(&[phase, outcome.as_str()]).inc();
        if *outcome != Outcome::Cancelled {
            self.hook_durations.with_label_values(&[phase]).observe(took.as_secs_f64());
        }
    }

    pub fn takeover(&self, rung: TakeoverLevel) {
        self.takeovers.with_label_values(&[rung.as_str()]).inc();
        // There may be no subscriber.
        let _ = self.takeover_levels.send(rung);
    }

    /// Subscribes to all further takeovers.
    pub fn takeovers(&self) -> broadcast::Receiver<TakeoverLevel> {
        self.takeover_levels.subscribe()
    }

    pub fn notification(&self, topic: NotificationKind, telling: DeliveryLabel) {
        self.notices.with_label_values(&[topic.as_str(), telling.as_str()]).inc();
    }

    /// Counts a poll of the metadata endpoint: `None` for a document, otherwise the word for the other result.
    pub fn poll(&self, instead: Option<&'static str>) {
        self.polls.with_label_values(&[instead.unwrap_or(DOCUMENT)]).inc();
        if instead.is_none() {
            self.last_document_at.set(seconds(clock::now()));
        }
    }

    pub fn journal_failed(&self) {
        self.journal_failures.inc();
    }

    pub fn export(&self, how: ExportLabel) {
        self.trace_exports.with_label_values(&[how.as_str()]).inc();
    }

    fn begin_at_zero(&self) {
        for reason in Reason::ALL {
            for outcome in PostOutcome::NAMES {
                self.approvals.with_label_values(&[reason.as_str(), outcome]);
            }
        }
        for phase in Phase::ALL {
            self.hook_durations.with_label_values(&[phase.as_str()]);
            for outcome in Outcome::NAMES {
                self.hook_attempts.with_label_values(&[phase.as_str(), outcome]);
            }
        }
        for rung in TakeoverLevel::ALL {
            self.takeovers.with_label_values(&[rung.as_str()]);
        }
        for topic in NotificationKind::ALL {
            for telling in DeliveryLabel::ALL {
                self.notices.with_label_values(&[topic.as_str(), telling.as_str()]);
            }
        }
        for export in ExportLabel::ALL {
            self.trace_exports.with_label_values(&[export.as_str()]);
        }
        self.polls.with_label_values(&[DOCUMENT]);
    }
}

/// The result of a poll with a validated document.
const DOCUMENT: &str = "document";

/// Seconds since 1970.
pub fn seconds(at: Timestamp) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "exact for the next 285,000 years")]
    let millis = at.0 as f64;
    millis / 1_000.0
}
