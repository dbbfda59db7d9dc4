//! Sessions without a connection, for tests: connecting workloads, their messages, and the reports.

use std::sync::Arc;

use tokio::sync::mpsc::Receiver;
use tokio::time::sleep;

use super::*;
use crate::hooks::command::clock;
use crate::hooks::{Deadline, Fence, HookReport, HookUpdate};
use allclear_core::model::document::{EventType, Source};
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::workload::{Intent, OnAbsent, Origin, Phase};

pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) struct SessionFixture {
    pub(super) sessions: Sessions,
    pub(super) reports: Receiver<HookReport>,
}

pub(super) fn workload(name: &str) -> Workload {
    Workload {
        name: WorkloadName(name.into()),
        group: None,
        after: Vec::new(),
        hooks: Vec::new(),
        origin: Origin::Session { owner: 0 },
        on_absent: OnAbsent::Hold,
    }
}

pub(super) fn greeting(boot: &str) -> Hello {
    Hello {
        workload: workload("db"),
        boot: boot.into(),
        lease: 10 * SECOND,
        retain: None,
        role: Role::Unknown,
        known: BTreeMap::new(),
        polls: false,
    }
}

pub(super) fn knowing(boot: &str, attempt: &str, ended: Option<HookOutcome>) -> Hello {
    Hello { known: BTreeMap::from([(attempt.to_owned(), ended)]), ..greeting(boot) }
}

/// The deadline is in 60 s.
pub(super) fn task(attempt: &str) -> HookTask {
    HookTask {
        attempt: attempt.into(),
        step: "step".into(),
        fence: Fence { term: 1, sequence: 1 },
        event_id: EventId::new("E"),
        event_type: EventType::Reboot,
        event_source: Source::User,
        resources: Vec::new(),
        phase: Phase::Drain,
        place: 0,
        workload: WorkloadName("db".into()),
        group: None,
        vm: VmName::new("vm"),
        intent: Intent::Run,
        deadline: Deadline::within(60 * SECOND, clock::now()),
        avoid: Vec::new(),
        prefer: Vec::new(),
        traceparent: None,
        drill: None,
    }
}

pub(super) fn terms(is_left_over: bool) -> Dispatch {
    Dispatch { is_left_over, deadline: Timestamp(0) }
}

impl SessionFixture {
    pub(super) fn open() -> Self {
        let (sessions, reports) = Sessions::open(Arc::new(clock::now));
        Self { sessions, reports }
    }

    pub(super) fn dial(&self, greeting: Hello) -> (SessionToken, Receiver<ToWorkload>) {
        let reserved = self.sessions.reserve(&greeting.workload.name, &greeting.boot).unwrap();
        self.sessions.admit(&reserved, greeting)
    }

    pub(super) fn run(&self, attempt: &str) {
        self.sessions.run(&task(attempt), terms(false));
    }

    /// The next reported outcome.
    pub(super) async fn end(&mut self) -> HookOutcome {
        loop {
            if let HookUpdate::Ended(ended) = self.reports.recv().await.unwrap().news {
                return ended;
            }
        }
    }

    pub(super) fn done(&self, visit: &SessionToken, attempt: &str) {
        self.sessions.report(visit, attempt, FromWorkload::Ended(HookOutcome::Done)).unwrap();
    }

    /// Only heartbeats for the duration.
    pub(super) async fn beat(&self, visit: &SessionToken, span: Duration) {
        for _ in 0..span.as_secs() {
            sleep(SECOND).await;
            self.sessions.hear(visit, None).unwrap();
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.sessions.presences()[0].connected
    }
}

pub(super) fn words(told: &mut Receiver<ToWorkload>) -> Vec<&'static str> {
    let mut words = Vec::new();
    while let Ok(told) = told.try_recv() {
        words.push(match told {
            ToWorkload::Step(_) => "step",
            ToWorkload::Cancel { .. } => "cancel",
            ToWorkload::Deadline { .. } => "deadline",
            ToWorkload::Acknowledged(_) => "acknowledged",
            ToWorkload::GoAway(_) => "go away",
        });
    }
    words
}

pub(super) fn lost(ended: &HookOutcome) -> bool {
    matches!(ended, HookOutcome::Lost(_))
}
