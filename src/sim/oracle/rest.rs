//! The second phase, after the last fault: everything comes to rest, and one more event is handled correctly.

use std::rc::Rc;
use std::time::Duration;

use crate::cloud::EventPlan;
use crate::event_queue::QueuedEvent;
use crate::replica_model::ModelContext;
use crate::scenario::FaultKind;
use crate::verdict::Property;
use crate::world::World;
use allclear_core::explain::explain;
use allclear_core::model::attempt::ENDED_WITHIN;
use allclear_core::model::document::{EventType, Source};
use allclear_core::model::event::Event;
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::isolated_approval::IsolatedApproval;
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::procedure::PostReason;

const EVERY: Duration = Duration::from_secs(1);
/// For an election, in addition to all other durations.
const ELECTION: Duration = Duration::from_secs(10);
/// After the end of the last event, in addition to the time for restoring.
const CLOSED_WITHIN: Duration = Duration::from_mins(3);
const LED_WITHIN: Duration = Duration::from_secs(30);
/// After the deadline of an attempt or a claim.
const SETTLED_WITHIN: Duration = Duration::from_secs(30);

/// A leader with this time of leadership has had time for everything.
const STEADY_FOR: Duration = Duration::from_secs(20);
/// From this number on, claims without success are further apart.
const MANY_CLAIMS: usize = 19;

#[derive(Default)]
pub(super) struct Rest {
    healed_at: Option<Timestamp>,
    led_at: Option<Timestamp>,
    /// The time at which the documents became empty.
    empty_since: Option<Timestamp>,
    last_event: Option<(EventId, Timestamp)>,
}

impl World {
    /// Checks the progress once a second.
    pub(crate) fn judge_progress(self: &Rc<Self>) {
        let now = self.now();
        self.put_in(EVERY, QueuedEvent::Judge);
        if !self.is_healed.get() {
            return self.judge_hooks_of_a_steady_leader();
        }
        let healed_at = *self.judge.borrow_mut().rest.healed_at.get_or_insert(now);
        let leader = (0..self.nodes.len()).filter_map(|vm| self.here(vm)).find(|here| here.status().leads());
        let Some(leader) = leader else {
            // Without a quorum of machines there can be no leader.
            if !self.has_quorum() {
                self.judge.borrow_mut().rest.led_at = Some(now);
            }
            let led_at = self.judge.borrow().rest.led_at.unwrap_or(healed_at);
            if now.since(led_at.max(healed_at)) > LED_WITHIN {
                self.broke(Property::L1, "nobody leads, though everybody is there".into());
            }
            return;
        };
        self.judge.borrow_mut().rest.led_at = Some(now);
        let state = self.chain.borrow().latest();
        if now.since(healed_at) > SETTLED_WITHIN {
            self.judge_what_is_open(&leader, &state);
        }
        let is_empty = {
            let cloud = self.cloud.borrow();
            cloud.planned() == 0 && cloud.events().iter().all(|event| event.ended.is_some())
        };
        if !is_empty {
            self.judge.borrow_mut().rest.empty_since = None;
            return self.judge_last_event(&leader, &state);
        }
        let empty_since = *self.judge.borrow_mut().rest.empty_since.get_or_insert(now);
        let patience = self.scenario.timing.forget_after + CLOSED_WITHIN;
        // The restore of a VM whose deletion was not observed is required until an operator removes the VM.
        let is_deleted = |vm: &VmName| self.vm(vm).is_some_and(|vm| self.nodes[vm].body.borrow().is_deleted);
        let waits_for_nobody = |event: &&Event| {
            let mut owed = state.slots.iter().filter(|(_, slot)| slot.by == event.announcement.id);
            !owed.any(|(member, _)| is_deleted(&member.vm))
        };
        if let Some(event) = state.open_events().find(waits_for_nobody) {
            if now.since(empty_since.max(healed_at)) > patience {
                let id = &event.announcement.id;
                self.broke(Property::L1, format!("{id} is over and still {}", event.stage()));
            }
            return;
        }
        if self.judge.borrow().rest.last_event.is_some() {
            self.judge_last_event(&leader, &state);
            return self.end();
        }
        // The deletion's start was not observed: the VM uses a share of its group until an operator removes the VM.
        let members = self.nodes[leader.me].kept.borrow().members.clone();
        if members.all().any(|member| self.nodes[member].body.borrow().is_deleted) {
            if now.since(empty_since) > SETTLED_WITHIN {
                self.end();
            }
            return;
        }
        let is_paused = state.pause(leader.time()).is_some();
        let is_whole = state.slots.is_empty();
        if !is_paused
            && is_whole
            && now.since(empty_since) > Duration::from_secs(5)
            && now.since(healed_at) > LED_WITHIN
        {
            self.announce_the_last(&state);
        }
    }

    /// A disk, log or link is slow: no deadline applies to any replica.
    fn is_slowed(&self) -> bool {
        self.is_in_force(|kind| {
            use FaultKind::{ApplySlow, DiskSlow, Slow, Unanswered};
            matches!(kind, Slow { .. } | DiskSlow { .. } | ApplySlow { .. } | Unanswered)
        })
    }

    fn has_quorum(&self) -> bool {
        let longest = (0..self.nodes.len()).max_by_key(|vm| self.nodes[*vm].kept.borrow().len()).unwrap_or(0);
        let members = self.nodes[longest].kept.borrow().members.clone();
        let runs = |vm: &&usize| self.nodes[**vm].is_up() && !self.nodes[**vm].is_paused();
        members.voters.iter().filter(runs).count() * 2 > members.voters.len()
    }

    /// L2 holds under faults, too, as long as there is a leader that has not just been stopped.
    fn judge_hooks_of_a_steady_leader(self: &Rc<Self>) {
        let is_awake = |vm: &usize| self.nodes[*vm].awake_for(self.now()) > STEADY_FOR;
        let awake = (0..self.nodes.len()).filter(is_awake).filter_map(|vm| self.here(vm));
        let leaders = awake.filter(|here| here.status().leads());
        for leader in leaders {
            let since = leader.leads_since();
            if since.is_some_and(|since| leader.time().since(since) > STEADY_FOR) && !self.is_slowed() {
                self.judge_hooks(&leader, &leader.state());
            }
        }
    }

    /// L2.
    fn judge_hooks(&self, leader: &ModelContext, state: &State) {
        let led_since = leader.leads_since().unwrap_or(Timestamp(0));
        for event in state.open_events() {
            let hangs = event.attempts.iter().find(|attempt| {
                let ends = event.deadline_of(attempt).max(led_since).plus(ENDED_WITHIN).plus(SETTLED_WITHIN);
                attempt.outcome.is_none() && leader.time() > ends
            });
            if let Some(attempt) = hangs {
                let (id, attempt) = (&event.announcement.id, attempt.id);
                let what = format!("attempt {attempt} of {id} is past its deadline and not settled");
                return self.broke(Property::L2, what);
            }
        }
    }

    /// L2 and L4.
    fn judge_what_is_open(&self, leader: &ModelContext, state: &State) {
        let now = leader.time();
        self.judge_hooks(leader, state);
        for event in state.open_events() {
            let id = &event.announcement.id;
            // The platform may have started the event meanwhile.
            let is_pending = event.stage() == Stage::Claimed && state.is_listed(id) && event.is_scheduled();
            let last = event.claims.last().filter(|_| is_pending && event.claims.len() < MANY_CLAIMS);
            let is_able = || leader.planning_input().approver(state, id).is_some();
            if last.is_some_and(|claim| now > claim.until.plus(SETTLED_WITHIN)) && is_able() {
                return self.broke(Property::L4, format!("a claim of {id} outlives its lease"));
            }
            if event.stage() < Stage::Started && explain(state, event, &leader.planning_input()).is_empty() {
                return self.broke(Property::L1, format!("nobody can say what {id} waits for"));
            }
        }
    }

    /// Announces an event without any obstacle.
    fn announce_the_last(self: &Rc<Self>, state: &State) {
        // A replica that was silent while its deletion was approved and cancelled is up, but no longer a member.
        let is_there = |vm: &usize| self.nodes[*vm].is_up() && self.here(*vm).is_some_and(|here| here.status().quorum);
        let Some(vm) = (0..self.nodes.len()).rev().find(is_there) else { return };
        let id = EventId::new("LAST");
        let plan = EventPlan {
            id: Some(id.clone()),
            // A notice of days: the event does not start by itself.
            notice: Duration::from_hours(24),
            ..EventPlan::new(EventType::Reboot, Source::User, vec![self.nodes[vm].name.clone()])
        };
        self.tell(|| format!("all is at rest after {} events; one more is announced", state.history.len()));
        {
            let mut judge = self.judge.borrow_mut();
            (judge.is_calm, judge.is_disturbed) = (true, false);
            judge.rest.last_event = Some((id, self.now()));
        }
        // No announcement with an unused id is rejected.
        let _ = self.cloud.borrow_mut().announce(self.now(), plan);
    }

    /// L3, and S2 in a run without faults.
    fn judge_last_event(&self, leader: &ModelContext, state: &State) {
        let last = self.judge.borrow().rest.last_event.clone();
        let Some((id, announced)) = last else { return };
        let (is_accepted, is_ended) = {
            let cloud = self.cloud.borrow();
            let event = cloud.event(&id);
            (event.is_some_and(|event| event.accepted.is_some()), event.is_some_and(|event| event.ended.is_some()))
        };
        // A leadership that begins long after the last entry lets the budget count anew, here once.
        let is_anew = state.open_event(&id).is_some_and(|event| event.halted_until.is_some());
        let patience = self.scenario.policy.user_budget * (1 + u32::from(is_anew)) + ELECTION;
        if !is_accepted && self.now().since(announced) > patience {
            let why = state.open_event(&id).map(|event| explain(state, event, &leader.planning_input()));
            let what = format!("an event that a user asked for is not approved within its budget: {why:?}");
            return self.broke(Property::L3, what);
        }
        let posts = self.posts_of(&id);
        if posts > 1 || (is_ended && posts != 1) {
            self.broke(Property::S2, format!("the last event was posted {posts} times, though nothing went wrong"));
        }
    }

    pub(crate) fn judge_the_end(&self, is_at_rest: bool) {
        if !is_at_rest {
            return self.broke(Property::L1, "it does not come to rest".into());
        }
        let (chain, judge) = (self.chain.borrow(), self.judge.borrow());
        let mut folded = State::default();
        for entry in chain.entries() {
            self.mutation.apply(&mut folded, entry);
        }
        if folded != *chain.latest() {
            return self.broke(Property::S9, "the log gives another state when it is folded once more".into());
        }
        let latest = chain.latest();
        let is_known = |posted: &&super::Posted| {
            let PostReason::Isolated(at) = posted.why else { return true };
            let mut events = latest.events();
            let by = &self.nodes[posted.by];
            by.body.borrow().is_deleted
                || judge.is_forgotten
                || events.any(|event| {
                    let is_it = |it: &IsolatedApproval| it.approver == by.name && it.at == at;
                    event.announcement.id == posted.event && event.isolated_approvals.iter().any(is_it)
                })
        };
        if let Some(untold) = judge.posts.iter().find(|posted| !is_known(posted)) {
            let what = format!(
                "{} was approved by {} alone, and the log does not know",
                untold.event, self.nodes[untold.by].name
            );
            return self.broke(Property::S2, what);
        }
        if latest.operator_seq < judge.acknowledged {
            self.broke(Property::S9, "what was confirmed to an operator is not in the log".into());
        }
    }
}
