//! The commands of a script about session workloads, and about roles.
//!
//! ```text
//! enlist VM NAME [group=G] [after=W,…] [on_absent=A]: PHASE …; …     delist VM NAME
//! note VM NAME [unknown|primary|replica] [away]                      roster VM: the effective workloads
//! extend ATTEMPT SPAN: until this long from now                      avoid|prefer VM NAME
//! circles: of workloads which wait for each other                    overrun EVENT: attempts to be stopped
//! observed VM EVENT SPAN: the event kept the VM from running         measures EVENT
//! ```

use allclear::core::assignments;
use allclear::core::schedule::attempts;
use allclear::core::schedule::constraints;
use std::fmt::Write;
use std::time::Duration;

use allclear::core::model::command::{
    Command, DeregisterSession, ExtendAttempt, RecordImpact, RegisterSession, UpdateConditions,
};
use allclear::core::model::id::{AttemptId, EventId, VmName, WorkloadName};
use allclear::core::model::workload::{Condition, Member, Origin, Readiness, Role, Workload};
use allclear::core::start_cause::is_second_approver;

use crate::machine::parse;
use crate::machine::world::World;

impl World {
    pub(crate) fn enlist(&mut self, rest: &str) -> Result<String, String> {
        let (vm, text) = rest.split_once(' ').ok_or("enlist VM NAME …")?;
        let (text, owner) = match text.split_once(" owner=") {
            Some((text, owner)) => (text, owner.parse().map_err(|_| "an owner is a number")?),
            None => (text, 0),
        };
        let workload = Workload { origin: Origin::Session { owner }, ..parse::workload(text)? };
        let answers = self.named(vm).into_iter().map(|vm| {
            let workload = workload.clone();
            self.commit(&vm, Command::RegisterSession(RegisterSession { workload }))
        });
        Ok(answers.collect())
    }

    pub(crate) fn delist(&mut self, rest: &str) -> Result<String, String> {
        let (rest, forced) = rest.strip_suffix(" forced").map_or((rest, false), |rest| (rest, true));
        let (vm, name) = rest.split_once(' ').ok_or("delist VM NAME [forced]")?;
        Ok(self.commit(
            &VmName::new(vm),
            Command::DeregisterSession(DeregisterSession { workload: WorkloadName(name.into()), forced }),
        ))
    }

    pub(crate) fn note(&mut self, rest: &str) -> Result<String, String> {
        let [vm, name, words @ ..] = &rest.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err("note VM NAME CONDITION".into());
        };
        let role = words.iter().find_map(|word| Role::parse(word)).unwrap_or_default();
        let readiness = match (words.contains(&"ready"), words.contains(&"not_ready")) {
            (true, _) => Readiness::Ready,
            (_, true) => Readiness::NotReady,
            (false, false) => Readiness::Unasked,
        };
        let condition = Condition { role, connected: !words.contains(&"away"), readiness };
        let conditions = vec![(WorkloadName((*name).into()), condition)];
        Ok(self.commit(&VmName::new(vm), Command::UpdateConditions(UpdateConditions { conditions })))
    }

    pub(crate) fn extend(&mut self, rest: &str) -> Result<String, String> {
        let (id, later) = rest.split_once(' ').ok_or("extend ATTEMPT SPAN")?;
        let attempt = AttemptId(id.parse().map_err(|_| "an attempt is a number")?);
        let owner = self.all().find_map(|event| Some((event, event.attempt(attempt)?)));
        let (event, on) = owner.map(|(event, found)| (event.announcement.id.clone(), found.on.clone())).ok_or("no")?;
        let deadline = self.input.now.plus(parse::span(later)?);
        Ok(self.commit(&on, Command::ExtendAttempt(ExtendAttempt { event, attempt, deadline })))
    }

    pub(crate) fn evidence(&mut self, word: &str, rest: &str) -> Result<String, String> {
        if word == "measures" {
            return self.measures(rest);
        }
        let words: Vec<_> = rest.split_whitespace().collect();
        let [vm, event, span] = words[..] else { return Err("observed VM EVENT SPAN".into()) };
        let (event, lasted) = (EventId::new(event), parse::span(span)?);
        Ok(self.commit(&VmName::new(vm), Command::RecordImpact(RecordImpact { event, lasted })))
    }

    /// Measured durations of an event, and whether a second approver approved the event.
    fn measures(&self, id: &str) -> Result<String, String> {
        let event = self.event(id)?;
        let told = |span: Option<Duration>| span.map_or("unknown".into(), |span| format!("{} s", span.as_secs_f64()));
        let who = if is_second_approver(&self.state, event) { ", approved by a second approver" } else { "" };
        Ok(format!(
            "notice {}, prepared in {}, all-clear after {}, impact {}{who}\n",
            told(event.announced_notice()),
            told(event.time_to_prepare()),
            told(event.time_to_all_clear()),
            told(event.impact())
        ))
    }

    pub(crate) fn roster(&self, vm: &str) -> Result<String, String> {
        let replica = self.state.replicas.get(&VmName::new(vm)).ok_or("no such replica")?;
        let mut shown = String::new();
        for workload in replica.effective() {
            let origin = if replica.sessions.get(&workload.name).is_some_and(|dialled| *dialled == *workload) {
                "dialled"
            } else {
                "configured"
            };
            let away = if replica.is_absent(workload) { ", away" } else { "" };
            let role = replica.condition(&workload.name).role;
            let _ = writeln!(shown, "{}: {origin}, {role}{away}", workload.name);
        }
        Ok(if shown.is_empty() { "nobody\n".into() } else { shown })
    }

    pub(crate) fn circles(&self) -> String {
        let names: Vec<_> = constraints::dependency_cycles(&self.state).iter().map(ToString::to_string).collect();
        if names.is_empty() { "nobody\n".into() } else { names.join(" ") + "\n" }
    }

    pub(crate) fn overrun(&self, id: &str) -> Result<String, String> {
        let event = self.event(id)?;
        let overrun = event.attempts.iter().filter(|each| attempts::is_overrun(event, each, self.input.now));
        let ids: Vec<_> = overrun.map(|attempt| attempt.id.to_string()).collect();
        Ok(if ids.is_empty() { "none\n".into() } else { ids.join(" ") + "\n" })
    }

    pub(crate) fn avoid(&self, rest: &str) -> Result<String, String> {
        Ok(names(&assignments::vms_to_avoid(&self.state, &self.input, &member(rest)?)))
    }

    pub(crate) fn prefer(&self, rest: &str) -> Result<String, String> {
        Ok(names(&assignments::preferred_vms(&self.state, &self.input, &member(rest)?)))
    }
}

fn member(rest: &str) -> Result<Member, String> {
    let (vm, name) = rest.split_once(' ').ok_or("VM NAME")?;
    Ok(Member { vm: VmName::new(vm), workload: WorkloadName(name.into()) })
}

fn names(names: &[VmName]) -> String {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    if names.is_empty() { "nobody\n".into() } else { names.join(" ") + "\n" }
}
