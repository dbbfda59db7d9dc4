//! Membership changes by a leader, one step at a time.

use std::rc::Rc;

use super::members::ModelMembers;
use super::stored::Payload;
use crate::world::World;

/// A learner no further behind than this is fit to vote.
const FIT_WITHIN: usize = 20;

impl World {
    /// A leader removes a replica whose VM is deleted.
    pub(crate) fn remove(self: &Rc<Self>, vm: usize, gone: usize) {
        let members = self.nodes[vm].kept.borrow().members.clone();
        let left = members.without(gone);
        if gone != vm && left != *members && !left.voters.is_empty() {
            self.change(vm, left, || format!("removes {}", self.nodes[gone].name));
        }
    }

    /// A leader adds a replica with another disk as a new learner, and promotes learners until there are enough voters.
    pub(crate) fn complete(self: &Rc<Self>, vm: usize) {
        let members = self.nodes[vm].kept.borrow().members.clone();
        let heard = self.nodes[vm].agreement.borrow().disks.clone();
        let stranger = members.all().filter(|member| *member != vm).find_map(|member| {
            let disk = *heard.get(&member)?;
            (!members.is_known(member, disk)).then_some((member, disk))
        });
        if let Some((member, disk)) = stranger {
            let next = members.with_learner(member, disk);
            return self.change(vm, next, || format!("takes {} for somebody new", self.nodes[member].name));
        }
        if members.voters.len() >= self.scenario.voters {
            return;
        }
        let fit = {
            let agreement = self.nodes[vm].agreement.borrow();
            let is_fit = |learner: &&usize| {
                agreement.matched.get(*learner).is_some_and(|matched| matched + FIT_WITHIN >= agreement.committed)
            };
            members.learners.iter().find(is_fit).copied()
        };
        if let Some(learner) = fit.filter(|learner| self.nodes[*learner].is_up()) {
            let next = members.with_voter(learner);
            self.change(vm, next, || format!("lets {} vote", self.nodes[learner].name));
        }
    }

    fn change(self: &Rc<Self>, vm: usize, next: ModelMembers, what: impl FnOnce() -> String) {
        let node = &self.nodes[vm];
        let is_settled = {
            let (kept, agreement) = (node.kept.borrow(), node.agreement.borrow());
            kept.term_at(agreement.committed) == kept.term && !kept.is_changing(agreement.committed)
        };
        if is_settled {
            self.tell(|| format!("{} {}", node.name, what()));
            self.append_slot(vm, Payload::Members(Rc::new(next)), None);
        }
    }
}
