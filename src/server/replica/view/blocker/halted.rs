//! The sentences of holds and pauses, and of hooks that wait for the end of a hold or a pause.

use super::{Sentences, Teller, list};
use crate::clock::rfc3339;
use allclear_core::explain::hooks_run_again;
use allclear_core::isolation::unaware_replicas::{may_approve_by_itself, unaware_replicas};
use allclear_core::model::operator::Suspension;
use allclear_core::model::time::Timestamp;
use allclear_core::model::treatment::Action;
use allclear_core::schedule::{last_call, slots};

impl Teller<'_> {
    /// Whether an operator holds the event and its hooks.
    pub(super) fn no_hooks(&self) -> bool {
        self.event.hold(self.input.now).is_some_and(|hold| hold.no_hooks)
    }

    /// The start of a preparation that begins after this time.
    fn prepared_after(&self, at: Timestamp) -> Option<Timestamp> {
        let prepares = self.event.treatment.as_ref().is_some_and(|it| it.action == Action::Prepare);
        let starts = self.event.preparation_starts();
        (prepares && !self.event.is_approved_by_operator() && starts > at).then_some(starts)
    }

    /// The end of a pause beside a hold, or of a hold beside a pause, if it ends later.
    fn longer_halt(&self, halt: &Suspension) -> Option<(Timestamp, &'static str)> {
        let now = self.input.now;
        let hold = self.event.hold(now).map(|hold| (hold.until, "hold"));
        let pause = self.state.pause(now).map(|pause| (pause.until, "pause"));
        hold.into_iter().chain(pause).max().filter(|(until, _)| *until > halt.until)
    }

    /// The hold or pause of an operator, and the replicas possibly unaware of the operator's request.
    pub(super) fn halted(&self, halt: &Suspension, what: &str, noun: &str, resolved_by: &'static str) -> Sentences {
        let unaware: Vec<_> = unaware_replicas(self.state, self.input, halt.number);
        let may_approve = self.event.is_user_initiated() && may_approve_by_itself(self.input, &unaware);
        let alone = if may_approve { ": an isolated replica among these may approve the event alone" } else { "" };
        let unknown = if unaware.is_empty() {
            String::new()
        } else {
            format!("; not acknowledged yet by {}{alone}", list(&unaware))
        };
        let message = format!("{what}, until {}, {halt}{unknown}", rfc3339(halt.until));
        let ends = self.event.notice_ends();
        let longer = self.longer_halt(halt);
        let (until, next) = if longer.map_or(halt.until, |(until, _)| until) < ends {
            if let Some((ends, what)) = longer {
                let until = rfc3339(halt.until);
                let next =
                    format!("the {noun} ends automatically at {until}, and the event still waits for the {what}");
                return Sentences::new(message, Some(ends), next, resolved_by);
            }
            if let Some(starts) = self.prepared_after(halt.until) {
                let next = format!("the {noun} ends automatically at {}; preparation starts", rfc3339(halt.until));
                return Sentences::new(message, Some(starts), next, resolved_by);
            }
            let then = if hooks_run_again(self.state, self.event, self.input.now) {
                "its hooks run again before the approval, also those that failed"
            } else {
                "hooks that are left run before the approval"
            };
            (halt.until, format!("the {noun} ends automatically, and the event goes on then: {then}"))
        } else {
            let call = last_call::begins_at(self.state, self.event);
            let hooks = if self.is_to_be_called(call) {
                format!("the hooks run from {} on, and the event is not approved; ", rfc3339(call))
            } else if self.no_hooks() {
                "no further hook begins before, unless an operator releases the event; ".into()
            } else {
                String::new()
            };
            (ends, format!("the {noun} does not prevent the start: {hooks}{}", self.platform()))
        };
        Sentences::new(message, Some(until), next, resolved_by)
    }

    /// When a hook that failed runs again.
    pub(super) fn again(&self) -> String {
        let now = self.input.now;
        if self.no_hooks() {
            return "no further hook of the event begins before an operator releases it, or the hold ends; ".into();
        }
        if slots::waits_for_last_call(self.event) {
            return "the hook may run again shortly before the notice ends; ".into();
        }
        let ends = |until: Timestamp, what| {
            if until < self.event.notice_ends() { what } else { "shortly before the notice ends" }
        };
        let hold = self.event.hold(now).map(|hold| (hold.until, ends(hold.until, "when the hold ends")));
        let pause = self.state.pause(now).filter(|_| !self.event.is_drill());
        let halt = hold.into_iter().chain(pause.map(|it| (it.until, ends(it.until, "when the pause ends")))).max();
        let then = |at: Timestamp| halt.filter(|(until, _)| *until > at).map(|(_, then)| then);
        if self.event.slots_since.is_none() {
            let returns = self.returning_after(&self.event.announcement.id).next().is_some();
            let otherwise = if returns { "when they are back" } else { "when the event has its slots" };
            let first = if returns { "its members return to service, and " } else { "" };
            return format!("{first}the hooks run again {}; ", then(now).unwrap_or(otherwise));
        }
        let at = slots::gives_back_at(self.state, self.event).filter(|at| *at > now);
        let again = |at| {
            let then = then(at).unwrap_or("when they are back");
            format!("at {} its members return to service, and the hooks run again {then}; ", rfc3339(at))
        };
        at.map_or_else(|| "the hook does not run again by itself; ".into(), again)
    }

    /// When the hooks of an event go on that an operator has halted.
    pub(super) fn halted_until(&self) -> Option<&'static str> {
        if slots::may_disrupt(self.state, self.event, self.input.now) {
            None
        } else if self.no_hooks() {
            Some("the hook is retried when an operator releases the event, or the hold ends")
        } else if self.event.hold(self.input.now).is_some() {
            Some("the hook is retried when the hold ends, at the latest shortly before the notice ends")
        } else {
            let pause = self.state.pause(self.input.now).filter(|_| !self.event.is_drill());
            pause.map(|_| "the hook is retried when the pause ends, at the latest shortly before the notice ends")
        }
    }
}
