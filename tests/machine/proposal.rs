//! The commands of a script which propose one entry as written, right or wrong.

use std::time::Duration;

use allclear::core::model::attempt::WaiverReason;
use allclear::core::model::claim::Reason;
use allclear::core::model::command::{
    BeginAttempt, BeginDrill, BeginLastCall, ClaimApproval, ClearSuspect, Command, DecommissionReplica, EndDrill,
    ExcludeReplica, ExpireAttempt, FinishAttempt, ForgetEvent, GiveBackSlots, MarkDocumentStale, ReadmitReplica,
    RecordPost, SuspectReplica, TakeSlots, WaiveHook,
};
use allclear::core::model::drill::Mode;
use allclear::core::model::hook_id::HookId;
use allclear::core::model::id::{AttemptId, EventId, VmName, WorkloadName};
use allclear::core::model::workload::{Intent, Member, Phase};
use allclear::core::schedule::affected_members::stints_of;

use crate::machine::parse;
use crate::machine::world::World;

impl World {
    pub(crate) fn settle(&mut self, rest: &str) -> Result<String, String> {
        let (id, text) = rest.split_once(' ').ok_or("settle ATTEMPT OUTCOME")?;
        let (text, by) = text.split_once(" by=").map_or((text, None), |(text, by)| (text, Some(VmName::new(by))));
        let attempt = AttemptId(id.parse().map_err(|_| "an attempt is a number")?);
        let owner = self.all().find_map(|event| Some((event, event.attempt(attempt)?)));
        let (event, on) = owner.map(|(event, found)| (event.announcement.id.clone(), found.on.clone())).ok_or("no")?;
        let outcome = parse::outcome(text)?;
        Ok(self.commit(&by.unwrap_or(on), Command::FinishAttempt(FinishAttempt { event, attempt, outcome })))
    }

    pub(crate) fn posted(&mut self, rest: &str) -> Result<String, String> {
        let (id, text) = rest.split_once(' ').ok_or("posted ATTEMPT OUTCOME")?;
        let (text, by) = text.split_once(" by=").map_or((text, None), |(text, by)| (text, Some(VmName::new(by))));
        let attempt = AttemptId(id.parse().map_err(|_| "an attempt is a number")?);
        let claimed =
            self.all().find_map(|event| Some((event, event.claims.iter().find(|claim| claim.attempt == attempt)?)));
        let (event, approver) =
            claimed.map(|(event, claim)| (event.announcement.id.clone(), claim.approver.clone())).ok_or("no claim")?;
        let outcome = parse::post_outcome(text)?;
        Ok(self.commit(&by.unwrap_or(approver), Command::RecordPost(RecordPost { event, attempt, outcome })))
    }

    /// Proposals which the planner would not make at this moment.
    pub(crate) fn raw(&mut self, word: &str, rest: &str) -> Result<String, String> {
        let options = parse::options(rest.split_whitespace());
        let command = match (word, &options.words[..]) {
            ("claim", [event, approver, reason]) => Command::ClaimApproval(ClaimApproval {
                event: EventId::new(event),
                approver: VmName::new(approver),
                reason: [
                    Reason::Prepared,
                    Reason::NothingToPrepare,
                    Reason::BudgetSpent,
                    Reason::Policy,
                    Reason::IsolatedApproval,
                    Reason::Operator,
                ]
                .into_iter()
                .find(|known| known.as_str() == *reason)
                .ok_or("no such reason")?,
                decided_at_revision: self.state.open_event(&EventId::new(event)).map_or(0, |it| it.decided_at_revision),
                stints: self
                    .state
                    .open_event(&EventId::new(event))
                    .map(|it| stints_of(&self.state, it))
                    .unwrap_or_default(),
                until: self.input.now.plus(self.input.timing.claim_lease),
                is_last_resort: false,
            }),
            ("drill", [mode, ..]) => Command::BeginDrill(BeginDrill {
                mode: Mode::parse(mode).ok_or("a drill is a rehearsal or a dry_run")?,
                announcement: parse::announcement(rest.trim_start_matches(mode), self.input.now)?,
                who: "somebody".into(),
            }),
            ("end_drill", [event]) => Command::EndDrill(EndDrill { event: EventId::new(event) }),
            ("expire", [attempt]) => {
                let attempt = AttemptId(attempt.parse().map_err(|_| "an attempt is a number")?);
                let event = self.all().find(|event| event.attempt(attempt).is_some()).ok_or("no such attempt")?;
                Command::ExpireAttempt(ExpireAttempt { event: event.announcement.id.clone(), attempt })
            }
            ("suspect", [vm, number]) => Command::SuspectReplica(SuspectReplica {
                replica: VmName::new(vm),
                number: number.parse().map_err(|_| "a suspicion has a number")?,
            }),
            ("absolve", [vm]) => Command::ClearSuspect(ClearSuspect { replica: VmName::new(vm) }),
            ("exclude", [vm]) => Command::ExcludeReplica(ExcludeReplica { replica: VmName::new(vm) }),
            ("readmit", [vm]) => Command::ReadmitReplica(ReadmitReplica { replica: VmName::new(vm) }),
            ("discount", [vm]) => Command::MarkDocumentStale(MarkDocumentStale { replica: VmName::new(vm) }),
            ("dismiss", [vm]) => Command::DecommissionReplica(DecommissionReplica { replica: VmName::new(vm) }),
            ("forget", [event]) => Command::ForgetEvent(ForgetEvent { event: EventId::new(event) }),
            ("take", [event]) => Command::TakeSlots(TakeSlots { event: EventId::new(event) }),
            ("give_back", [event]) => Command::GiveBackSlots(GiveBackSlots { event: EventId::new(event) }),
            ("last_call", [event]) => Command::BeginLastCall(BeginLastCall { event: EventId::new(event) }),
            ("waive", [event, vm, name, phase]) => Command::WaiveHook(WaiveHook {
                event: EventId::new(event),
                member: member(vm, name),
                hook: hook(phase)?,
                why: WaiverReason::Unreachable,
            }),
            ("begin", [event, vm, name, phase]) => Command::BeginAttempt(BeginAttempt {
                event: EventId::new(event),
                member: member(vm, name),
                hook: hook(phase)?,
                intent: Intent::Run,
                on: VmName::new(options.values.get("on").unwrap_or(vm)),
                deadline: self.input.now.plus(options.span("timeout")?.unwrap_or(Duration::from_mins(1))),
            }),
            _ => return Err("no such command".into()),
        };
        let leader = self.input.me.clone();
        Ok(self.commit(&leader, command))
    }
}

pub(crate) fn member(vm: &str, name: &str) -> Member {
    Member { vm: VmName::new(vm), workload: WorkloadName(name.into()) }
}

pub(crate) fn hook(phase: &str) -> Result<HookId, String> {
    Ok(HookId { phase: Phase::parse(phase).ok_or("no such phase")?, key: 0 })
}
