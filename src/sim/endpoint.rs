//! The metadata endpoint of each VM: its answers, its faults, and the posts through the endpoint.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::cloud::{ApprovalEffect, Approver};
use super::event_queue::QueuedEvent;
use super::replica_model::ModelContext;
use super::scenario::{FaultClass, FaultKind};
use super::tasks::Oneshot;
use super::world::World;
use allclear_core::model::claim::PostOutcome;
use allclear_core::model::document::{Announcement, Document, Status};
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::time::Timestamp;
use allclear_core::procedure::PostReason;

/// A request without an answer by then is cancelled.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// No credible answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PollFailed;

/// The result of a poll.
pub(super) struct PollResult {
    pub(super) document: Document,
    pub(super) incarnation: u64,
    /// By the platform's clock.
    pub(super) date: Option<Timestamp>,
}

/// A post on its way.
pub(super) struct Letter {
    by: usize,
    event: EventId,
    why: PostReason,
    /// `None` if the reply is lost.
    answer: Option<Oneshot<PostOutcome>>,
}

/// The past answers of one endpoint.
#[derive(Default)]
pub(super) struct EndpointState {
    /// The first document of this endpoint.
    oldest: Option<Document>,
    answers: u64,
    last: Option<Document>,
    /// The time at which a validated document last showed an event as Scheduled.
    scheduled: BTreeMap<EventId, Timestamp>,
    /// Start and number of consecutive validated documents without an event.
    missing: BTreeMap<EventId, (Timestamp, u32)>,
    /// The longest such sequence since the event was last listed, with its duration.
    gone: BTreeMap<EventId, Vec<(u32, Duration)>>,
}

impl EndpointState {
    /// True if this endpoint has returned so many consecutive documents without the event, for at least `span`.
    pub(super) fn has_said_gone(&self, event: &EventId, documents: u32, span: Duration) -> bool {
        let long = |(count, lasted): &(u32, Duration)| *count >= documents && *lasted >= span;
        self.gone.get(event).is_some_and(|series| series.iter().any(long))
    }

    /// The time at which a validated document of this endpoint last showed the event as Scheduled.
    pub(super) fn scheduled_at(&self, event: &EventId) -> Option<Timestamp> {
        self.scheduled.get(event).copied()
    }

    /// The VMs of the event in the last document of this endpoint.
    pub(super) fn names(&self, event: &EventId) -> &[VmName] {
        self.last.as_ref().and_then(|last| last.get(event)).map_or(&[], |announced| &announced.resources)
    }

    fn served(&mut self, document: &Document, now: Timestamp) {
        if let Some(before) = &self.last {
            for event in before.events.iter().filter(|event| document.get(&event.id).is_none()) {
                self.missing.entry(event.id.clone()).or_insert((now, 0));
            }
        }
        self.missing.retain(|id, _| document.get(id).is_none());
        for (id, (since, documents)) in &mut self.missing {
            let series = self.gone.entry(id.clone()).or_default();
            if *documents == 0 {
                *since = now;
                series.push((0, Duration::ZERO));
            }
            *documents += 1;
            if let Some(last) = series.last_mut() {
                *last = (*documents, now.since(*since));
            }
        }
        for event in &document.events {
            self.gone.remove(&event.id);
            if event.status == Status::Scheduled {
                self.scheduled.insert(event.id.clone(), now);
            }
        }
        self.last = Some(document.clone());
    }

    /// A poll without a document, or a new start, resets the counts.
    pub(super) fn not_served(&mut self) {
        self.missing.values_mut().for_each(|(_, documents)| *documents = 0);
    }
}

impl ModelContext {
    /// Polls the endpoint once.
    pub(super) async fn ask_endpoint(&self) -> Result<PollResult, PollFailed> {
        let (world, vm) = (&self.world, self.me);
        let way = world.random.borrow_mut().millis(2, 15);
        self.sleep(way).await;
        let trouble = world.trouble(vm, |trouble| !trouble.is_of_posts());
        match trouble {
            Some(FaultClass::Silent) => {
                world.endpoints.borrow_mut()[vm].not_served();
                self.sleep(ANSWERS_WITHIN).await;
                return Err(PollFailed);
            }
            Some(FaultClass::Empty) if makes!(world.mutation, EmptyIsNoEvents) => {
                return Ok(PollResult { document: Document::default(), incarnation: 0, date: None });
            }
            Some(FaultClass::Empty | FaultClass::Status(_)) => {
                world.endpoints.borrow_mut()[vm].not_served();
                return Err(PollFailed);
            }
            _ => {}
        }
        if let Some(FaultClass::Slow(seconds)) = trouble {
            self.sleep(Duration::from_secs(seconds)).await;
        }
        let name = &world.nodes[vm].name;
        let notice = world.cloud.borrow_mut().poll(world.now(), name).ok_or(PollFailed)?;
        let mut endpoints = world.endpoints.borrow_mut();
        let seat = &mut endpoints[vm];
        seat.answers += 1;
        // Regardless of any fault that starts or ends meanwhile, a wrong answer is never given twice in a row.
        let is_odd = seat.answers % 2 == 1;
        let is_wrong = is_odd && !world.is_healed.get();
        let document = match trouble {
            Some(FaultClass::Old) if is_wrong => seat.oldest.clone().unwrap_or_default(),
            Some(FaultClass::Missing) if is_wrong => Document::default(),
            Some(FaultClass::Partial) if !world.is_healed.get() => {
                let first = |event: Announcement| Announcement {
                    resources: event.resources.into_iter().take(1).collect(),
                    ..event
                };
                Document::new(notice.events.into_iter().map(first).collect())
            }
            Some(FaultClass::Whole) => {
                let all: Vec<VmName> = world.nodes.iter().map(|node| node.name.clone()).collect();
                let whole = |event: Announcement| Announcement { resources: all.clone(), ..event };
                Document::new(notice.events.into_iter().map(whole).collect())
            }
            Some(FaultClass::OtherLetters) => {
                let small = |event: Announcement| Announcement { id: EventId::new(event.id.as_str()), ..event };
                Document::new(notice.events.into_iter().map(small).collect())
            }
            _ => Document::new(notice.events),
        };
        seat.oldest.get_or_insert_with(|| document.clone());
        seat.served(&document, world.now());
        // Whole seconds, by the platform's clock, which is right.
        let date = world.scenario.are_answers_dated.then(|| Timestamp(world.now().0.div_euclid(1_000) * 1_000));
        Ok(PollResult { document, incarnation: notice.incarnation, date })
    }

    /// Posts an approval, once.
    pub(super) async fn post_approval(&self, event: &EventId, why: PostReason) -> PostOutcome {
        let (world, vm) = (&self.world, self.me);
        world.judge_post(vm, event, why);
        let trouble = world.trouble(vm, |trouble| trouble.is_of_posts() || trouble == FaultClass::Silent);
        let way = match trouble {
            Some(FaultClass::PostsSlow(seconds)) => Duration::from_secs(seconds),
            _ => world.random.borrow_mut().millis(5, 30),
        };
        let answer = Oneshot::new();
        match trouble {
            Some(FaultClass::PostsRefused(status)) => {
                self.sleep(way).await;
                return PostOutcome::Refused(status);
            }
            Some(FaultClass::PostsLost | FaultClass::Silent) => {}
            _ => {
                let answer = (trouble != Some(FaultClass::RepliesLost)).then(|| answer.clone());
                let letter = Letter { by: vm, event: event.clone(), why, answer };
                world.put_in(way, QueuedEvent::Arrive(Box::new(letter)));
            }
        }
        let deadline = self.steady().plus(ANSWERS_WITHIN);
        let outcome = self.within(deadline, answer.get(&world.tasks)).await;
        outcome.unwrap_or_else(|| PostOutcome::Unknown("no reply".into()))
    }
}

impl World {
    fn trouble(&self, vm: usize, counts: impl Fn(FaultClass) -> bool) -> Option<FaultClass> {
        self.slowest(|at, kind| match kind {
            FaultKind::Endpoint(trouble) if at == vm && counts(*trouble) => Some(*trouble),
            _ => None,
        })
    }

    /// A post gets to the platform.
    pub(super) fn arrive(self: &Rc<Self>, letter: Letter) {
        let Letter { by, event, why, answer } = letter;
        let approver = Approver::Vm(self.nodes[by].name.clone());
        let approval = self.cloud.borrow_mut().approve(self.now(), approver, &event);
        self.tell(|| format!("the platform is told that {event} may start, by {}: {approval:?}", self.nodes[by].name));
        self.judge_arrival(by, &event, why, approval);
        if let Some(answer) = answer {
            let outcome = match approval {
                ApprovalEffect::Accepted | ApprovalEffect::Repeated => PostOutcome::Accepted,
                ApprovalEffect::Started | ApprovalEffect::Finished => PostOutcome::Refused(400),
                ApprovalEffect::Unknown => PostOutcome::Refused(404),
            };
            answer.give(&self.tasks, outcome);
        }
    }
}
