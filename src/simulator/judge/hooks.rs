//! What is judged when a hook begins to run: that it is the one that the log asks for, once, and at its time.

use crate::machine::workload::{Intent, Phase};
use crate::simulator::program::Task;
use crate::simulator::verdict::Property;
use crate::simulator::world::World;

impl World {
    pub(in crate::simulator) fn judge_begin(&self, vm: usize, task: &Task) {
        let name = &self.nodes[vm].name;
        let Task { key, member, hook, intent, .. } = task;
        let (event, attempt) = key;
        let before = self.judge.borrow_mut().begun.insert(key.clone(), (vm, hook.phase));
        let has_ended = before.and_then(|_| self.judge.borrow().ended.get(key).cloned());
        let is_again = before.is_some_and(|(before, _)| before != vm || hook.phase < Phase::Restore);
        if let Some(outcome) = has_ended {
            let what = format!("attempt {attempt} of {event} ended ({}) and is run again", outcome.as_word());
            return self.broke(Property::S7, what);
        }
        if is_again {
            let what = format!("attempt {attempt} of {event} ({} of {member}) is run twice", hook.phase);
            return self.broke(Property::S7, what);
        }
        let state = self.chain.borrow().latest();
        let known = state.event(event).and_then(|event| event.attempt(*attempt));
        // A clock that stood still does not know how late it is.
        let knows_the_time = self.nodes[vm].body.borrow().stood == 0;
        let is_asked = known.is_some_and(|known| known.on == *name && (known.outcome.is_none() || !knows_the_time));
        if !is_asked {
            let what = format!("{name} runs attempt {attempt} of {event}, which nobody asks for any more");
            return self.broke(Property::S7, what);
        }
        let is_over = self.cloud.borrow().event(event).is_some_and(|event| event.ended.is_some());
        if hook.phase >= Phase::Restore && !is_over && *intent == Intent::Run {
            let what = format!("{member} is put back on {name} while the platform still lists {event}");
            self.broke(Property::S8, what);
        }
    }
}
