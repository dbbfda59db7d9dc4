//! Steps of the events, each printed once, in the order of time: steps of the cloud, of the cluster, of a database and
//! its clients, and of the demo itself.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::fake_cloud::Post;
use crate::local_cluster::members::MemberReport;
use crate::local_cluster::seconds;
use crate::local_cluster::snapshot::ClusterSnapshot;
use allclear_cloud::{Approver, EventEnd, PlatformEvent, PlatformStartCause};
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::time::Timestamp;
use allclear_server::replica::clock;

/// One step of one event.
struct NarratedStep {
    event: EventId,
    at: Timestamp,
    who: &'static str,
    what: String,
}

/// A step is printed when the cluster's last report is this much younger: the report has every earlier step.
const SETTLED_AFTER: Duration = Duration::from_secs(1);
/// A step is printed at this age, also without a report.
const PRINTED_AFTER: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Narration {
    told: BTreeSet<(EventId, Timestamp, String)>,
    /// When the latest event was announced: the zero of steps without an event.
    zero: Option<Timestamp>,
    /// The lines that are not printed yet, each with its time and its order at that time.
    pending: Vec<(Timestamp, u8, String)>,
    /// The time of the last printed line.
    printed: Timestamp,
}

impl Narration {
    /// Adds the steps that are not known yet.
    pub(super) fn add(
        &mut self,
        events: &[PlatformEvent],
        posts: &[Post],
        sight: &ClusterSnapshot,
        said: &[MemberReport],
    ) {
        let mut steps = Vec::new();
        for event in events {
            steps.extend(by_the_cloud(event, posts));
            let known = sight.event(&event.id).map(|event| event.timeline.as_slice()).unwrap_or_default();
            steps.extend(known.iter().filter(|step| !repeats(&step.what)).filter_map(|step| {
                let at = clock::from_rfc3339(&step.at)?;
                Some(NarratedStep { event: event.id.clone(), at, who: "cluster", what: step.what.clone() })
            }));
        }
        steps.retain(|step| self.told.insert((step.event.clone(), step.at, step.what.clone())));
        self.zero = events.last().map(|event| event.announced_at).or(self.zero);
        let printed = self.printed;
        let line = |step: &NarratedStep| {
            let event = events.iter().find(|event| event.id == step.event)?;
            let at = if is_measured(&step.what) { step.at.max(printed) } else { step.at };
            let text = told(Some(event.announced_at), at, &names(&event.plan.resources), step.who, &step.what);
            Some((at, rank(&step.what), text))
        };
        self.pending.extend(steps.iter().filter_map(line));
        self.pending.extend(said.iter().map(|said| {
            let is_about = |event: &&PlatformEvent| event.plan.resources.contains(&VmName::new(&said.vm));
            let event = events.iter().rfind(is_about).or(events.last());
            (said.at, 0, told(event.map(|event| event.announced_at), said.at, &said.vm, said.who, &said.what))
        }));
    }

    /// Adds an action of the demo itself.
    pub(super) fn add_own(&mut self, what: &str) {
        let now = clock::now();
        self.pending.push((now, 0, told(self.zero, now, "", "demo", what)));
    }

    /// Takes the lines in the order of time, as far as no earlier line can follow.
    pub(super) fn settled(&mut self, sight: &ClusterSnapshot) -> Vec<String> {
        let reported = sight.answers().filter_map(|(_, answer)| clock::from_rfc3339(&answer.status.now)).max();
        let settled = reported.map(|at| at.minus(SETTLED_AFTER));
        self.taken(settled.unwrap_or_default().max(clock::now().minus(PRINTED_AFTER)))
    }

    /// Takes all lines.
    pub(super) fn all(&mut self) -> Vec<String> {
        self.taken(Timestamp(i64::MAX))
    }

    fn taken(&mut self, until: Timestamp) -> Vec<String> {
        self.pending.sort_by_key(|(at, rank, _)| (*at, *rank));
        let settled = self.pending.partition_point(|(at, ..)| *at <= until);
        self.printed = settled.checked_sub(1).map_or(self.printed, |last| self.pending[last].0);
        self.pending.drain(..settled).map(|(_, _, text)| text).collect()
    }
}

/// A stage that another line of the timeline explains: the first sight, the policy's choice, the approval, the start.
fn repeats(what: &str) -> bool {
    ["announced", "preparing", "claimed", "approved", "started"].contains(&what)
}

/// The pause of a VM has the time at which the event ended, and is known when the VM's replica has measured the pause.
fn is_measured(what: &str) -> bool {
    what.ends_with("measured no pause of its own") || what.ends_with("by its own measurement")
}

fn told(zero: Option<Timestamp>, at: Timestamp, vms: &str, who: &str, what: &str) -> String {
    let after = zero.map_or_else(|| " ".repeat(9), |zero| format!("{:>7.2} s", seconds(zero, at)));
    format!("{after}  {vms:<11}  {who:<7}  {what}")
}

/// Order of steps with equal time: first the end of a hook, then the next stage, then the start of a hook in this
/// stage.
fn rank(what: &str) -> u8 {
    if what.ends_with(" begins") || what.ends_with(" was first seen") { 2 } else { u8::from(!what.contains(' ')) }
}

fn by_the_cloud(event: &PlatformEvent, posts: &[Post]) -> Vec<NarratedStep> {
    let step = |at, what: String| NarratedStep { event: event.id.clone(), at, who: "cloud", what };
    let notice = event.plan.notice.as_secs_f64();
    let (kind, source) = (&event.plan.kind, &event.plan.source);
    let begins = match event.started {
        Some((at, PlatformStartCause::Failure)) if at == event.announced_at => "it has started already".to_owned(),
        Some(_) | None => format!("starts automatically after {notice:.1} s"),
    };
    let announced = format!("announces {kind} by {source} of {}; {begins}", names(&event.plan.resources));
    let mut steps = vec![step(event.announced_at, announced)];
    if let Some(last) = event.moved.checked_sub(1).and_then(|last| event.plan.moves.get(last)) {
        let starts = seconds(event.announced_at, event.not_before);
        let what = format!("changes the time: the event starts automatically after {starts:.1} s");
        steps.push(step(event.announced_at.plus(last.after), what));
    }
    for post in posts.iter().filter(|post| post.event == event.id) {
        let result = post.result.unwrap_or("lost on the way");
        let at = clock::from_rfc3339(&post.at).unwrap_or(event.announced_at);
        steps.push(step(at, format!("receives the approval from {}: {result}", post.vm)));
    }
    if let Some((at, Approver::Other(who))) = &event.accepted {
        steps.push(step(*at, format!("receives the order to start from {who}")));
    }
    if let Some((at, cause)) = event.started {
        let why = match cause {
            PlatformStartCause::Failure => "the hardware has failed",
            PlatformStartCause::Approved => "approved",
            PlatformStartCause::NotBefore => "the notice has ended",
            PlatformStartCause::Ordered => "the start was ordered",
        };
        steps.push(step(at, format!("starts the event: {why}")));
    }
    if let Some((at, end)) = event.ended {
        let what = match end {
            EventEnd::Finished => "finishes the event: the event is gone",
            EventEnd::Cancelled => "cancels the event: the event is gone",
        };
        steps.push(step(at, what.to_owned()));
    }
    steps
}

pub(super) fn names(vms: &[VmName]) -> String {
    vms.iter().map(VmName::as_str).collect::<Vec<_>>().join(", ")
}

/// An event in a few words, for messages.
pub(super) fn called(event: &PlatformEvent) -> String {
    format!("{} of {}", event.plan.kind, names(&event.plan.resources))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local_cluster::snapshot::{ReplicaSnapshot, ReplicaStatus};
    use allclear_cloud::EventPlan;
    use allclear_core::model::document::{EventType, Source};
    use allclear_wire::pb::allclear::operator::v1 as shown;

    fn announced() -> PlatformEvent {
        let mut plan = EventPlan::new(EventType::Reboot, Source::User, vec![VmName::new("db-0")]);
        plan.notice = Duration::from_secs(20);
        let (announced_at, not_before) = (Timestamp(1_000), Timestamp(21_000));
        let id = EventId::new("E");
        PlatformEvent { id, plan, announced_at, not_before, accepted: None, started: None, ended: None, moved: 0 }
    }

    fn sight(steps: &[(i64, &str)]) -> ClusterSnapshot {
        let step = |(at, what): &(i64, &str)| shown::Step {
            at: clock::rfc3339(Timestamp(*at)),
            what: (*what).to_owned(),
            ..shown::Step::default()
        };
        let event =
            shown::Event { id: "e".into(), timeline: steps.iter().map(step).collect(), ..shown::Event::default() };
        let answer = ReplicaStatus { status: shown::Status::default(), events: vec![event] };
        ClusterSnapshot { replicas: vec![ReplicaSnapshot { name: "db-1".into(), answer: Some(answer.into()) }] }
    }

    #[test]
    fn everything_is_told_once_and_in_the_order_in_which_it_makes_sense() {
        let mut story = Narration::default();
        let steps = [(1_200, "announced"), (1_500, "closed"), (1_500, "restore on db-0: done")];
        story.add(&[announced()], &[], &sight(&steps), &[]);
        let told = story.all();
        let expected = [
            "   0.00 s  db-0         cloud    announces Reboot by User of db-0; starts automatically after 20.0 s",
            "   0.50 s  db-0         cluster  restore on db-0: done",
            "   0.50 s  db-0         cluster  closed",
        ];
        assert_eq!(told, expected);
        story.add(&[announced()], &[], &sight(&steps), &[]);
        assert_eq!(story.all(), Vec::<String>::new());
    }

    #[test]
    fn a_measurement_that_comes_late_is_told_when_it_is_known() {
        let mut story = Narration::default();
        story.add(&[announced()], &[], &sight(&[(3_000, "restoring")]), &[]);
        assert_eq!(story.all().len(), 2);
        let late = [
            (2_000, "db-0 measured no pause of its own"),
            (2_500, "db-0 did not run for 9 ms, by its own measurement"),
        ];
        story.add(&[announced()], &[], &sight(&late), &[]);
        for line in story.all() {
            assert!(line.starts_with("   2.00 s "), "{line}");
        }
    }

    #[test]
    fn a_step_waits_until_no_earlier_step_can_follow() {
        let mut story = Narration::default();
        story.add_own("later");
        let earlier = [(1_200, "restore on db-0: done")];
        story.add(&[announced()], &[], &sight(&earlier), &[]);
        let told = story.settled(&ClusterSnapshot::default());
        assert!(told.len() == 2 && told[1].ends_with("restore on db-0: done"), "{told:?}");
        assert!(story.all()[0].ends_with("later"));
    }

    #[test]
    fn what_the_cloud_does_is_told_where_the_cluster_knows_nothing() {
        let mut event = announced();
        event.ended = Some((Timestamp(3_000), EventEnd::Cancelled));
        let mut story = Narration::default();
        story.add(&[event], &[], &ClusterSnapshot::default(), &[]);
        let told = story.all();
        assert_eq!(told.last().unwrap(), "   2.00 s  db-0         cloud    cancels the event: the event is gone");
    }
}
