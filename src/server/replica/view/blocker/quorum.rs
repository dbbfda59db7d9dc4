//! The sentences of a blocker where too few replicas reach each other.

use super::{Sentences, Teller, list};
use crate::clock::rfc3339;
use allclear_core::isolation::approval::blockers_to_override;
use allclear_core::model::blocker::Blocker;
use allclear_core::model::isolated_blocker::ApprovalForecast;
use allclear_core::model::isolated_blocker::IsolatedBlocker;
use allclear_core::model::operator::Suspension;
use allclear_wire::pb::allclear::operator::v1 as shown;

impl Teller<'_> {
    /// Degradation level 4: the isolated approval by this replica, if no other replica returns before.
    pub(super) fn no_quorum(&self, takeover: Option<&ApprovalForecast>) -> Sentences {
        let message = if self.is_between_leaders() {
            "there is no leader at this moment, although enough replicas answer; an election takes a second or two"
                .into()
        } else {
            format!("there is no quorum: too few replicas can reach each other{}", self.lost())
        };
        let on_its_own = || {
            // The others of three or more voters may run hooks.
            let is_alone = !matches!(
                takeover,
                Some(ApprovalForecast::Not(IsolatedBlocker::NotAPair | IsolatedBlocker::LedElsewhere(_)))
            );
            let has_to_move = is_alone && !self.is_between_leaders() && self.has_service_to_move();
            let unmoved = "; until then no further hook begins, and hooks begin at once when a quorum is back: if the \
                           primary is on the VM, stop allclear on that VM, once no hook of the event runs, and then \
                           move the primary by hand";
            format!(
                "when a quorum is back, the event continues from its present stage; {}otherwise {}{}",
                self.approvable_alone_later(),
                self.platform(),
                if has_to_move { unmoved } else { "" }
            )
        };
        let (message, until, next) = match takeover {
            Some(ApprovalForecast::From(at)) if *at > self.input.now => {
                (message, *at, "this replica approves the event alone, unless a quorum is back by then".into())
            }
            Some(ApprovalForecast::From(at)) => {
                (message, *at, "this replica is about to approve the event alone, unless a quorum is back".into())
            }
            Some(ApprovalForecast::Not(obstacle)) => {
                let (until, next) = match obstacle {
                    IsolatedBlocker::Held(halt) | IsolatedBlocker::Paused(halt) => {
                        let next = "when a quorum is back, the event continues from its present stage; when the hold \
                                    or pause ends, this replica decides again, and may approve the event alone";
                        (halt.until, next.into())
                    }
                    IsolatedBlocker::NotAPair | IsolatedBlocker::LedElsewhere(_) => {
                        let next = format!(
                            "the other voters may approve the event at any moment, and this replica learns of the \
                             approval when it reaches them again; {}",
                            on_its_own()
                        );
                        (self.event.notice_ends(), next)
                    }
                    _ => (self.event.notice_ends(), on_its_own()),
                };
                let obstacle = self.obstacle(obstacle);
                (format!("{message}; this replica does not approve the event alone, because {obstacle}"), until, next)
            }
            // A drill does not start.
            None if self.event.is_drill() => {
                (message, self.input.now, "when a quorum is back, the event continues from its present stage".into())
            }
            None => (message, self.event.notice_ends(), on_its_own()),
        };
        Sentences::new(message, Some(until), next, self.who_helps_without_quorum(takeover))
    }

    fn who_helps_without_quorum(&self, takeover: Option<&ApprovalForecast>) -> &'static str {
        match takeover {
            Some(ApprovalForecast::From(_)) => {
                "the operator of the VMs: bring replicas or the network back; to prevent the approval, stop this \
                 replica"
            }
            Some(ApprovalForecast::Not(_)) if self.overridden().is_some() && self.others_may_have_quorum() => {
                "the operator of the VMs: bring replicas or the network back; or an operator, by approving the event \
                 on a replica with a quorum, or on this replica alone if no replica has a quorum"
            }
            Some(ApprovalForecast::Not(_)) if self.overridden().is_some() => {
                "the operator of the VMs: bring replicas or the network back; or an operator, by approving the event \
                 on this replica alone"
            }
            _ => "the operator of the VMs: bring replicas or the network back",
        }
    }

    /// The meaning of an operator's approval on this replica alone; `None` where no such approval is possible.
    pub(super) fn isolated_approval(&self, blocker: &Blocker) -> Option<shown::IsolatedApproval> {
        let overridden = self.overridden().filter(|_| matches!(blocker, Blocker::NoQuorum { .. }))?;
        let (alone, me) = (self.input.isolated.as_ref()?, &self.input.me);
        let unreachable = alone.unreachable_voters(me);
        let others = || alone.voters.iter().filter(|voter| *voter != me).cloned().collect();
        let other_voters = if unreachable.is_empty() { others() } else { unreachable };
        Some(shown::IsolatedApproval {
            overrides: overridden.iter().map(|obstacle| self.obstacle(obstacle)).collect(),
            other_voters: other_voters.iter().map(ToString::to_string).collect(),
            others_may_have_quorum: self.others_may_have_quorum(),
        })
    }

    fn others_may_have_quorum(&self) -> bool {
        self.input.isolated.as_ref().is_some_and(|alone| !alone.is_one_of_a_pair())
    }

    fn overridden(&self) -> Option<Vec<IsolatedBlocker>> {
        blockers_to_override(self.state, self.input, &self.event.announcement.id)?.ok()
    }

    /// From when an operator may approve the event on this replica alone.
    fn approvable_alone_later(&self) -> String {
        match blockers_to_override(self.state, self.input, &self.event.announcement.id) {
            Some(Err(IsolatedBlocker::TooSoon(at))) => {
                format!("from {} on, an operator may approve the event on this replica alone; ", rfc3339(at))
            }
            _ => String::new(),
        }
    }

    fn obstacle(&self, obstacle: &IsolatedBlocker) -> String {
        match obstacle {
            IsolatedBlocker::OtherEvent(id) => format!("{} is open in the same group", self.named(id)),
            IsolatedBlocker::OtherApproval(id) => {
                format!("this replica approved {}, and that event is not over", self.named(id))
            }
            IsolatedBlocker::Held(Suspension { until, .. }) | IsolatedBlocker::Paused(Suspension { until, .. }) => {
                format!("{obstacle}, until {}", rfc3339(*until))
            }
            IsolatedBlocker::HookMayRun(until) | IsolatedBlocker::TooSoon(until) => {
                format!("{obstacle} (until {})", rfc3339(*until))
            }
            obstacle => obstacle.to_string(),
        }
    }

    /// The voters that answered are enough for a quorum.
    fn is_between_leaders(&self) -> bool {
        let alone = self.input.isolated.as_ref();
        alone.is_some_and(|alone| !alone.voters.is_empty() && (alone.reached.len() + 1) * 2 > alone.voters.len())
    }

    /// The voters that do not answer; unknown before the voters were asked.
    fn lost(&self) -> String {
        let lost = self.input.isolated.as_ref().map(|alone| alone.unreachable_voters(&self.input.me));
        match lost.as_deref().unwrap_or_default() {
            [] => String::new(),
            [one] => format!(": {one} is unreachable"),
            all => format!(": {} are unreachable", list(all)),
        }
    }
}
