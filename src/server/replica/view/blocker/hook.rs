//! The sentences of blockers caused by hooks.

use super::{Sentences, Teller};
use crate::clock::rfc3339;
use allclear_core::model::attempt::Outcome;
use allclear_core::model::blocker::Blocker;
use allclear_core::model::hook_id::HookId;
use allclear_core::model::id::VmName;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::{Member, Phase};
use allclear_core::schedule::{failure, required, slots, step_state};

const OWNER_OR_OPERATOR: &str = "the owner of the workload, or an operator, by skipping the hook";

impl Teller<'_> {
    pub(super) fn of_hook(&self, blocker: &Blocker) -> Sentences {
        let label = |member: &Member, hook: &HookId| self.state.hook_label(member, *hook);
        match blocker {
            Blocker::HookRunning { member, hook, on, deadline, expected_end, .. } => {
                let message =
                    format!("the {} hook of {member} runs on {on}{}", label(member, hook), self.awaited(*hook));
                let (until, next) = self.in_time(*deadline, self.end_of_run(*expected_end));
                Sentences::new(message, Some(until), next, "the hook, or an operator, by skipping the hook")
            }
            Blocker::HookBlocked { member, hook, reason, retry_at } => {
                let message = format!("the {} hook of {member} is blocked: {reason}", label(member, hook));
                match self.halted_until() {
                    Some(halted) if hook.phase.is_disruptive() || self.no_hooks() => {
                        self.without_its_end(message, halted, OWNER_OR_OPERATOR)
                    }
                    _ => {
                        let next = match self.gives_way_at(member, *hook) {
                            Some(at) => format!(
                                "from {} on the event goes on without the hook; until then it is retried",
                                rfc3339(at)
                            ),
                            None => self.retried(*retry_at).into(),
                        };
                        let (until, next) = self.in_time(*retry_at, next);
                        Sentences::new(message, Some(until), next, OWNER_OR_OPERATOR)
                    }
                }
            }
            Blocker::WorkloadAway { member, hook, since, .. } => {
                let (label, since) = (label(member, hook), rfc3339(*since));
                let message =
                    format!("the {label} hook of {member} waits: the workload has not been connected since {since}");
                let is_halted = hook.phase.is_disruptive()
                    && self.event.slots_since.is_some()
                    && self.event.attempts_of(member, *hook).next().is_none()
                    && !slots::may_disrupt(self.state, self.event, self.input.now);
                let and = if is_halted { " and the event goes on" } else { "" };
                let next = format!("the hook runs when the workload connects again{and}");
                self.without_its_end(message, &next, OWNER_OR_OPERATOR)
            }
            Blocker::ReplicaAway { member, hook, since, passed_over_at } => {
                self.replica_away(member, *hook, *since, *passed_over_at)
            }
            Blocker::Unregistered { replica, passed_over_at } => self.unregistered(replica, *passed_over_at),
            Blocker::HookFailed { member, hook, reason, notice_ends } => {
                let message = format!("the {} hook of {member} failed: {reason}", label(member, hook));
                let next = format!("allclear does not approve the event; {}{}", self.again(), self.platform());
                let resolved_by = "an operator, by letting the hook run again once the cause is mended, or by skipping \
                                   the hook or approving the event; for future events, the owner of the workload";
                Sentences::new(message, Some(*notice_ends), next, resolved_by)
            }
            Blocker::HookNotRun { member, hook, notice_ends } => {
                let message = format!(
                    "the {} hook of {member} was not run: the time for preparation ended before its turn",
                    label(member, hook)
                );
                let next = format!("allclear does not approve the event; {}", self.platform());
                let resolved_by = "an operator, by skipping the hook or approving the event; for future events, \
                                   policy.prepare_ahead";
                Sentences::new(message, Some(*notice_ends), next, resolved_by)
            }
            Blocker::HookWaiting { member, hook, from } => self.waiting(member, *hook, *from),
            _ => Sentences::new(blocker.code(), None, "", ""),
        }
    }

    /// From when on a blocked hook that may fail no longer delays the event.
    fn gives_way_at(&self, member: &Member, hook: HookId) -> Option<Timestamp> {
        let steps = required::required_steps(self.state, self.event);
        let step = steps.iter().find(|step| step.member == *member && step.id == hook)?;
        let is_ahead = |at: &Timestamp| *at > self.input.now && *at < self.event.preparation_ends();
        step_state::gives_way_at(step).filter(is_ahead)
    }

    /// Why an approved event still waits for a running hook.
    fn awaited(&self, hook: HookId) -> &'static str {
        if hook.phase == Phase::Failover && self.event.is_approved_by_operator() {
            ", and the operator's approval waits for it: a failover that is cut off may leave no primary"
        } else {
            ""
        }
    }

    fn end_of_run(&self, expected_end: Option<Timestamp>) -> String {
        match expected_end {
            Some(expected) if expected > self.input.now => {
                format!(
                    "the hook expects to end at {}; {}; if the hook does not end by its deadline, allclear stops the \
                     hook",
                    rfc3339(expected),
                    self.then()
                )
            }
            Some(expected) => {
                format!("the hook expected to end at {}; allclear stops the hook at its deadline", rfc3339(expected))
            }
            None => format!(
                "when the hook has ended, {}; if the hook does not end by its deadline, allclear stops the hook",
                self.then()
            ),
        }
    }

    /// The next step after the end of a hook, unless the hook fails permanently.
    fn then(&self) -> &'static str {
        if self.event.is_drill() {
            "the remaining hooks run, and the drill ends"
        } else if self.event.is_approved_by_operator() {
            "the approval is posted, and the remaining hooks do not run"
        } else {
            "the remaining hooks run, and the event is approved"
        }
    }

    fn replica_away(
        &self,
        member: &Member,
        hook: HookId,
        since: Option<Timestamp>,
        passed_over_at: Option<Timestamp>,
    ) -> Sentences {
        let (hook, vm) = (self.state.hook_label(member, hook), &member.vm);
        let message = match since {
            Some(since) => {
                format!(
                    "the {hook} hook of {member} waits for {vm}: its replica has been unreachable since {}",
                    rfc3339(since)
                )
            }
            None => format!("the {hook} hook of {member} waits: no replica that could run the hook is reachable"),
        };
        let resolved_by = "the operator of the VM, or an operator, by skipping the hook";
        match passed_over_at {
            Some(at) => {
                let is_first = self.event.budget_ends().is_none_or(|ends| at < ends);
                let otherwise = if is_first { "; if the replica does not answer, the hook is waived" } else { "" };
                let (until, next) =
                    self.in_time(at, format!("the hook runs when the replica answers again{otherwise}"));
                Sentences::new(message, Some(until), next, resolved_by)
            }
            None => self.without_its_end(message, "the hook runs when the replica answers again", resolved_by),
        }
    }

    fn unregistered(&self, replica: &VmName, passed_over_at: Option<Timestamp>) -> Sentences {
        let message =
            format!("the replica on {replica} has not registered its workloads yet, so the hooks to run are unknown");
        let (until, otherwise) = match passed_over_at {
            Some(at) => (at, format!("the event is approved without these hooks, {}", self.why_then())),
            None => (self.event.notice_ends(), self.platform()),
        };
        let next = format!("the hooks run when the replica has registered; otherwise {otherwise}");
        let resolved_by = "the operator of the VM, or an operator, by approving the event";
        Sentences::new(message, Some(until), next, resolved_by)
    }

    fn waiting(&self, member: &Member, hook: HookId, from: Timestamp) -> Sentences {
        let label = self.state.hook_label(member, hook);
        if slots::waits_for_last_call(self.event) {
            let message = format!(
                "the {label} hook of {member} waits: the event could not continue, and gave its slots back twice"
            );
            let next = format!("the hook may run shortly before the notice ends; {}", self.platform());
            let resolved_by = "an operator, by skipping the hook or approving the event";
            return Sentences::new(message, Some(from), next, resolved_by);
        }
        let last = self.event.forward_attempts_of(member, hook).next_back().and_then(|last| last.outcome.as_ref());
        let (message, next) = match last.map(|(outcome, _)| outcome) {
            None => (
                format!("the {label} hook of {member} has not started yet"),
                "the hook starts in its turn, after the hooks before it",
            ),
            Some(Outcome::Done) => {
                let message =
                    format!("the {label} hook of {member} completed some time ago and has to confirm its result");
                (message, "allclear runs the confirmation in a moment")
            }
            Some(outcome) => {
                let word = outcome.as_str().replace('_', " ");
                let last = outcome.reason().map_or_else(|| word.clone(), |why| format!("{word}: {why}"));
                let message = format!("the {label} hook of {member} is retried; its last attempt: {last}");
                (message, self.retried(from))
            }
        };
        let (until, next) = self.in_time(from, next.into());
        let is_retried = last.is_some_and(|(outcome, _)| *outcome != Outcome::Done);
        Sentences::new(
            message,
            Some(until),
            next,
            if is_retried { OWNER_OR_OPERATOR } else { "no action is necessary" },
        )
    }

    /// What follows for a hook that is due again at a time.
    fn retried(&self, at: Timestamp) -> &'static str {
        let is_over = self.event.budget_for_hooks_ends().is_some_and(|ends| at >= ends);
        if is_over { "no time is left for the hook" } else { "the hook is retried" }
    }

    /// The next step by `at`, and for an event with a budget also what the end of the budget brings.
    fn in_time(&self, at: Timestamp, next: String) -> (Timestamp, String) {
        if self.will_hold() {
            let ends = rfc3339(self.event.preparation_ends());
            return (at, format!("{next}; if it has not succeeded by {ends}, the hook that failed holds the event"));
        }
        let Some(ends) = self.approved_without_hooks_at() else { return (at, next) };
        let when = if at > self.input.now && at < ends { format!(" at {}", rfc3339(at)) } else { String::new() };
        (
            ends,
            format!(
                "{next}{when}; the event is approved as soon as all hooks have completed, and at {} without the missing \
                 hooks, {}",
                rfc3339(ends),
                self.why_then()
            ),
        )
    }

    fn approved_without_hooks_at(&self) -> Option<Timestamp> {
        let is_by_budget = !self.event.is_drill() && !self.event.is_approved_by_operator() && !self.will_hold();
        self.event.approved_without_hooks_at().filter(|_| is_by_budget)
    }

    fn will_hold(&self) -> bool {
        !self.event.is_drill() && !self.event.is_approved_by_operator() && failure::will_hold(self.state, self.event)
    }

    fn why_then(&self) -> String {
        match &self.event.treatment {
            Some(treatment) if !self.event.is_user_initiated() => format!("by the rule \"{}\"", treatment.rule),
            _ => "because the event is user-initiated".into(),
        }
    }

    /// The sentences for a workload or replica that has to return first, at an unknown time.
    fn without_its_end(&self, message: String, next: &str, resolved_by: &'static str) -> Sentences {
        let (until, otherwise) = match self.approved_without_hooks_at() {
            Some(ends) => (ends, format!("the event is approved without this hook, {}", self.why_then())),
            None => (self.event.notice_ends(), self.platform()),
        };
        Sentences::new(message, Some(until), format!("{next}; otherwise {otherwise}"), resolved_by)
    }
}
