//! Checks at the start of a hook: the log has assigned the hook, the hook runs once, and at the right time.

use crate::cloud::Approver;
use crate::program::ProgramTask;
use crate::verdict::Property;
use crate::world::World;
use allclear_core::model::id::EventId;
use allclear_core::model::workload::{Intent, Member, Phase};

impl World {
    /// S4, by the effects of hooks: a member is out from the first hook that takes the member out of service until its
    /// restore has completed.
    fn judge_out(&self, event: &EventId, member: &Member) {
        let Some(vm) = self.vm(&member.vm) else { return };
        let workload = self.scenario.workloads[vm].iter().find(|workload| workload.name == member.workload);
        // Without a restore hook the return to service is unknown. A renamed workload is a different workload.
        let Some(workload) = workload.filter(|it| it.hooks_of(Phase::Restore).next().is_some()) else { return };
        let Some(group) = &workload.group else { return };
        self.judge.borrow_mut().out.entry(member.clone()).or_insert((group.clone(), event.clone()));
        let cloud = self.cloud.borrow();
        let named = cloud.event(event).map(|event| event.plan.resources.clone()).unwrap_or_default();
        let out = self.judge.borrow().out.clone();
        // A member that a last call or a repair took out in addition counts only for its own event.
        let counts = |by: &EventId| by == event || !self.is_excused(by);
        let of_group = out.iter().filter(|(_, (of, by))| of == group && counts(by)).map(|(member, _)| member);
        let is_there = |it: &&Member| self.vm(&it.vm).is_some_and(|vm| !self.nodes[vm].body.borrow().is_deleted);
        let (own, others): (Vec<&Member>, Vec<&Member>) =
            of_group.filter(is_there).partition(|member| named.contains(&member.vm));
        let limit = usize::try_from(self.scenario.max_unavailable).unwrap_or(usize::MAX);
        if !others.is_empty() && own.len() + others.len() > limit && !self.is_excused(event) {
            let what = format!("{member} is taken away for {event} while {} are out in {group}", others.len());
            self.broke(Property::S4, what);
        }
    }
}

impl World {
    pub(crate) fn judge_begin(&self, vm: usize, task: &ProgramTask) {
        let name = &self.nodes[vm].name;
        let ProgramTask { key, member, hook, intent, .. } = task;
        let (event, attempt) = key;
        let before = self.judge.borrow_mut().begun.insert(key.clone(), (vm, hook.phase));
        let has_ended = before.and_then(|_| self.judge.borrow().ended.get(key).cloned());
        let is_again = before.is_some_and(|(before, _)| before != vm || hook.phase < Phase::Restore);
        if let Some(outcome) = has_ended {
            let what = format!("attempt {attempt} of {event} ended ({}) and is run again", outcome.as_str());
            return self.broke(Property::S7, what);
        }
        if is_again {
            let what = format!("attempt {attempt} of {event} ({} of {member}) is run twice", hook.phase);
            return self.broke(Property::S7, what);
        }
        let state = self.chain.borrow().latest();
        let known = state.event(event).and_then(|event| event.attempt(*attempt));
        // A clock that was stopped does not know how late it is.
        let knows_the_time = self.nodes[vm].body.borrow().stood == 0;
        let is_asked = known.is_some_and(|known| known.on == *name && (known.outcome.is_none() || !knows_the_time));
        if !is_asked {
            let what = format!("{name} runs attempt {attempt} of {event}, which nobody asks for any more");
            return self.broke(Property::S7, what);
        }
        if hook.phase.is_disruptive() && *intent == Intent::Run {
            self.judge_out(event, member);
        }
        // A member that an event has given back may be restored while the event is announced, but not while the event
        // may start at any moment.
        let cloud = self.cloud.borrow();
        let mut going = cloud.events().iter().filter(|event| event.plan.resources.contains(&member.vm));
        // An approval by another party is unknown to the replicas before the event starts.
        let is_ours = |accepted: &Option<_>| matches!(accepted, Some((_, Approver::Vm(_))));
        let is_going = going.any(|it| it.ended.is_none() && (is_ours(&it.accepted) || it.started.is_some()));
        drop(cloud);
        if hook.phase >= Phase::Restore && is_going && *intent == Intent::Run {
            let what = format!("{member} is put back on {name} for {event} while the platform may take it away");
            self.broke(Property::S8, what);
        }
    }
}
