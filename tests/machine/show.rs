//! Output of scripts: commands, assignments, blockers and the timeline of an event, one line each.

use std::fmt::Write;

use allclear::core::assignments::Assignment;
use allclear::core::model::attempt::{Outcome, WaiverReason};
use allclear::core::model::blocker::Blocker;
use allclear::core::model::claim::PostOutcome;
use allclear::core::model::command::{
    AbandonRestores, BeginAttempt, BeginDrill, BeginLastCall, BeginLeadership, ChooseTreatment, ClaimApproval,
    ClearSuspect, Command, DecommissionReplica, DeregisterSession, EndDrill, ExcludeReplica, ExpireAttempt,
    ExtendAttempt, FinishAttempt, ForgetEvent, GiveBackSlots, MarkDocumentStale, RaiseVersion, ReadmitReplica,
    ReconcileJournal, RecordDeliveries, RecordImpact, RecordPost, RecordReachability, RegisterSession,
    RegisterWorkloads, ReportDocument, ReportProgress, RequestAction, SuspectReplica, TakeSlots, UpdateConditions,
    WaiveHook,
};
use allclear::core::model::event::Event;
use allclear::core::model::hook_id::HookId;
use allclear::core::model::operator::{OperatorAction, OperatorRecord};
use allclear::core::model::state::State;
use allclear::core::model::time::Timestamp;
use allclear::core::model::workload::{Intent, Member};
use allclear::core::schedule::missing::missing_hooks;
use allclear::core::start_cause::StartCause;

/// Time since the beginning of the script: `15m`, `1m30s`, `2h0m1s`.
pub(crate) fn time(at: Timestamp) -> String {
    let (sign, total) = if at.0 < 0 { ("-", at.0.unsigned_abs()) } else { ("", at.0.unsigned_abs()) };
    let (hours, minutes) = (total / 3_600_000, total / 60_000 % 60);
    let (seconds, millis) = (total / 1_000 % 60, total % 1_000);
    let mut text = String::from(sign);
    for (number, unit) in [(hours, "h"), (minutes, "m"), (seconds, "s"), (millis, "ms")] {
        if number > 0 {
            let _ = write!(text, "{number}{unit}");
        }
    }
    if total == 0 { "0s".into() } else { text }
}

fn hook(member: &Member, id: HookId, intent: Intent) -> String {
    // Hooks of scripts run nothing, so the key of a hook without a name is its place, unless the hook `runs` something.
    let which = match id.key {
        0 => String::new(),
        place @ 1..1_000 => format!("#{}", place + 1),
        key => format!("#{:04x}", key >> 48),
    };
    let verb = if intent == Intent::Run { String::new() } else { format!("{intent} ") };
    format!("{verb}{}{which} of {}@{}", id.phase, member.workload, member.vm)
}

pub(crate) fn command(command: &Command) -> String {
    match command {
        Command::RegisterWorkloads(RegisterWorkloads { workloads, .. }) => {
            format!("register {} workloads", workloads.len())
        }
        Command::ReportDocument(ReportDocument { document, .. }) => format!("report {} events", document.events.len()),
        Command::MarkDocumentStale(MarkDocumentStale { replica }) => format!("discount {replica}"),
        Command::ChooseTreatment(ChooseTreatment { event, treatment }) => {
            let budget = treatment.budget.map_or(String::new(), |span| format!(", budget {}", span.as_secs()));
            format!("treat {event}: {} by '{}'{budget}", treatment.action, treatment.rule)
        }
        Command::BeginAttempt(BeginAttempt { event, member, hook: id, intent, on, deadline }) => {
            format!("begin {event}: {} on {on} until {}", hook(member, *id, *intent), time(*deadline))
        }
        Command::ReportProgress(ReportProgress { event, attempt, progress }) => {
            format!("advance {event}: {attempt}, {}", progress.text)
        }
        Command::FinishAttempt(FinishAttempt { event, attempt, outcome: o }) => {
            format!("settle {event}: {attempt}, {}", outcome(o))
        }
        Command::ExpireAttempt(ExpireAttempt { event, attempt }) => format!("expire {event}: {attempt}"),
        Command::WaiveHook(WaiveHook { event, member, hook: id, why }) => {
            format!("waive {event}: {}, {}", hook(member, *id, Intent::Run), why.as_str())
        }
        Command::ClaimApproval(ClaimApproval { event, approver, reason, until, is_last_resort, .. }) => {
            let way = if *is_last_resort { ", last resort" } else { "" };
            format!("claim {event}: {} by {approver} until {}{way}", reason.as_str(), time(*until))
        }
        Command::RecordPost(RecordPost { event, attempt, outcome }) => {
            format!("posted {event}: {attempt}, {}", outcome.as_str())
        }
        Command::TakeSlots(TakeSlots { event }) => format!("take {event}"),
        Command::GiveBackSlots(GiveBackSlots { event }) => format!("give back {event}"),
        Command::BeginLastCall(BeginLastCall { event }) => format!("last call {event}"),
        Command::AbandonRestores(AbandonRestores { replica }) => format!("{replica} was removed"),
        Command::RecordReachability(RecordReachability { replica, reachable }) => {
            format!("{replica} is {}", if *reachable { "reachable" } else { "unreachable" })
        }
        Command::ForgetEvent(ForgetEvent { event }) => format!("forget {event}"),
        Command::BeginLeadership(BeginLeadership { term, turn, voters }) => {
            format!("lead in term {term}, turn {turn}, {} voters", voters.len())
        }
        Command::SuspectReplica(SuspectReplica { replica, number }) => format!("suspect {replica}, number {number}"),
        Command::ClearSuspect(ClearSuspect { replica }) => format!("absolve {replica}"),
        Command::ExcludeReplica(ExcludeReplica { replica }) => format!("exclude {replica}"),
        Command::ReadmitReplica(ReadmitReplica { replica }) => format!("readmit {replica}"),
        Command::ReconcileJournal(ReconcileJournal { number, journal }) => {
            format!("account under {number}, {} entries", journal.len())
        }
        Command::DecommissionReplica(DecommissionReplica { replica }) => format!("dismiss {replica}"),
        Command::BeginDrill(BeginDrill { announcement, mode, .. }) => format!("drill {}: {mode}", announcement.id),
        Command::EndDrill(EndDrill { event }) => format!("end drill {event}"),
        Command::RequestAction(RequestAction { what, who, .. }) => format!("{} asked by {who}", what.as_str()),
        Command::RegisterSession(RegisterSession { workload }) => format!("enlist {}", workload.name),
        Command::DeregisterSession(DeregisterSession { workload, .. }) => format!("delist {workload}"),
        Command::UpdateConditions(UpdateConditions { conditions }) => format!("note {} conditions", conditions.len()),
        Command::RecordImpact(RecordImpact { event, lasted }) => format!("observed {event}: {} ms", lasted.as_millis()),
        Command::RecordDeliveries(RecordDeliveries { deliveries: told }) => format!("notified of {}", told.len()),
        Command::RaiseVersion(RaiseVersion { version }) => format!("raise to version {version}"),
        Command::ExtendAttempt(ExtendAttempt { event, attempt, deadline }) => {
            format!("extend {event}: {attempt} until {}", time(*deadline))
        }
    }
}

pub(crate) fn errand(errand: &Assignment<'_>) -> String {
    match errand {
        Assignment::Run { event, attempt, restart_restore_if_lost } => {
            let again = if *restart_restore_if_lost { ", again if lost" } else { "" };
            let what = hook(&attempt.member, attempt.hook, attempt.intent);
            format!("run {} for {}: {what}{again}", attempt.id, event.announcement.id)
        }
        Assignment::Cancel { event, attempt } => format!("cancel {} for {}", attempt.id, event.announcement.id),
        Assignment::Post { event, claim } => format!("post {} for {}", claim.attempt, event.announcement.id),
    }
}

fn outcome(outcome: &Outcome) -> String {
    match outcome.reason() {
        Some(reason) => format!("{} ({reason})", outcome.as_str()),
        None => outcome.as_str().into(),
    }
}

pub(crate) fn blocker(blocker: &Blocker) -> String {
    let code = blocker.code();
    let of = |member: &Member, id: HookId| hook(member, id, Intent::Run);
    match blocker {
        Blocker::Deciding
        | Blocker::Observing
        | Blocker::NoHealthyChannel
        | Blocker::NotListed
        | Blocker::NoQuorum { .. } => code.into(),
        Blocker::TooEarly { starts_at, missed } => {
            let missed =
                missed.map_or(String::new(), |it| format!(", missed {} to {}", time(it.opens), time(it.closes)));
            format!("{code}, starts at {}{missed}", time(*starts_at))
        }
        Blocker::HookWaiting { member, hook, from } => format!("{code}: {} from {}", of(member, *hook), time(*from)),
        Blocker::ReplicaAway { member, hook, since, passed_over_at } => {
            let since = since.map_or_else(String::new, |since| format!(", its replica away since {}", time(since)));
            let passed = passed_over_at.map_or_else(String::new, |at| format!(", passed over at {}", time(at)));
            format!("{code}: {}{since}{passed}", of(member, *hook))
        }
        Blocker::Unregistered { replica, passed_over_at } => {
            let passed = passed_over_at.map_or_else(String::new, |at| format!(", passed over at {}", time(at)));
            format!("{code}: {replica} is not registered{passed}")
        }
        Blocker::HookRunning { attempt, member, hook, on, since, deadline, .. } => {
            let (since, deadline) = (time(*since), time(*deadline));
            format!("{code}: {attempt}, {} on {on} since {since} until {deadline}", of(member, *hook))
        }
        Blocker::HookBlocked { member, hook, reason, retry_at } => {
            format!("{code}: {}, {reason}, again at {}", of(member, *hook), time(*retry_at))
        }
        Blocker::WorkloadAway { member, hook, since, .. } => {
            format!("{code}: {}, the workload is not connected since {}", of(member, *hook), time(*since))
        }
        Blocker::HookFailed { member, hook, reason, notice_ends } => {
            format!("{code}: {}, {reason}, notice ends at {}", of(member, *hook), time(*notice_ends))
        }
        Blocker::HookNotRun { member, hook, notice_ends } => {
            format!("{code}: {}, notice ends at {}", of(member, *hook), time(*notice_ends))
        }
        Blocker::Budget { group, by, notice_ends } => {
            let by: Vec<_> = by.iter().map(ToString::to_string).collect();
            let group = group.as_ref().map_or_else(|| "no group".into(), ToString::to_string);
            format!("{code}: {group}, by {}, notice ends at {}", by.join(", "), time(*notice_ends))
        }
        Blocker::Hold(halt) | Blocker::Paused(halt) => {
            format!("{code} {halt}, until {}, number {}", time(halt.until), halt.number)
        }
        Blocker::Posting { approver, since, until } => {
            format!("{code}: {approver} since {} until {}", time(*since), time(*until))
        }
        Blocker::PostFailed { approver, outcome, at, again_at } => {
            format!("{code}: {approver}, {} at {}, again at {}", outcome.as_str(), time(*at), time(*again_at))
        }
        Blocker::WaitingForPlatform { since } => format!("{code} since {}", time(*since)),
    }
}

fn why(why: &WaiverReason) -> String {
    match why {
        WaiverReason::Unreachable => why.as_str().into(),
        WaiverReason::Skipped { who, reason } => format!("{} by {who}: {reason}", why.as_str()),
    }
}

/// The timeline of an event.
pub(crate) fn event(event: &Event) -> String {
    let announced = &event.announcement;
    let resources: Vec<_> = announced.resources.iter().map(ToString::to_string).collect();
    let seen: Vec<_> = event.seen_by.iter().map(ToString::to_string).collect();
    let mut text = format!(
        "{} {} {} {} {}, notice ends at {}, seen by {}\n",
        announced.id,
        announced.status,
        announced.source,
        announced.kind,
        resources.join(","),
        time(event.notice_ends()),
        seen.join(",")
    );
    for (stage, at) in &event.entered {
        let _ = writeln!(text, "  {stage} at {}", time(*at));
    }
    for at in &event.gave_back {
        let _ = writeln!(text, "  gave its slots back at {}", time(*at));
    }
    for at in &event.former_calls {
        let _ = writeln!(text, "  last call at {}", time(*at));
    }
    attempts(event, &mut text);
    for waiver in &event.waivers {
        let what = hook(&waiver.member, waiver.hook, Intent::Run);
        let _ = writeln!(text, "  waived {what} at {}: {}", time(waiver.at), why(&waiver.why));
    }
    for OperatorRecord { number, at, who, reason, what } in &event.operator_records {
        let what = match what {
            OperatorAction::Hold { until, .. } => format!("hold until {}", time(*until)),
            OperatorAction::Approve { revision, .. } => format!("approve as of revision {revision}"),
            OperatorAction::Prepare { from, .. } => format!("prepare from {}", time(*from)),
            OperatorAction::Retry { member, hook: id, .. } => format!("retry of {}", hook(member, *id, Intent::Run)),
            other => format!("{other:?}").to_lowercase(),
        };
        let _ = writeln!(text, "  wish {number} at {}: {what}, by {who}: {reason}", time(*at));
    }
    for claim in &event.claims {
        let ended = |(end, at): &(PostOutcome, Timestamp)| format!("{} at {}", end.as_str(), time(*at));
        let end = claim.outcome.as_ref().map_or("no outcome".into(), ended);
        let (reason, at) = (claim.reason.as_str(), time(claim.at));
        let _ = writeln!(text, "  {}: claim for {} at {at}, {reason}: {end}", claim.attempt, claim.approver);
    }
    for takeover in &event.isolated_approvals {
        let ended = |(end, at): &(PostOutcome, Timestamp)| format!("{} at {}", end.as_str(), time(*at));
        let end = takeover.outcome.as_ref().map_or("no outcome".into(), ended);
        let recorded = takeover.recorded.map_or("never".into(), time);
        let (by, at) = (&takeover.approver, time(takeover.at));
        let _ = writeln!(text, "  taken over by {by} at {at}: {end}, in the log at {recorded}");
    }
    for (vm, lasted) in &event.impacts {
        let _ = writeln!(text, "  kept {vm} from running for {} ms", lasted.as_millis());
    }
    if let Some(ending) = event.ending {
        let cause = event.start_cause().map_or("none", StartCause::as_str);
        let _ = writeln!(text, "  {}, start cause {cause}", ending.as_str());
    } else if let Some(cause) = event.start_cause() {
        let _ = writeln!(text, "  start cause {}", cause.as_str());
    }
    text
}

fn attempts(event: &Event, text: &mut String) {
    for attempt in &event.attempts {
        let what = hook(&attempt.member, attempt.hook, attempt.intent);
        let ended = |end: &(Outcome, Timestamp)| format!("{} at {}", outcome(&end.0), time(end.1));
        let end = attempt.outcome.as_ref().map_or("runs".into(), ended);
        let blocked = attempt.blocked.map_or(String::new(), |blocked| {
            format!(", blocked {} times since {}", blocked.times, time(blocked.since))
        });
        let late = attempt.late.as_ref().map_or(String::new(), |late| format!(", late: {}", ended(late)));
        let _ = writeln!(
            text,
            "  {}: {what} on {} at {}: {end}{blocked}{late}",
            attempt.id,
            attempt.on,
            time(attempt.begun_at)
        );
    }
}

/// The hooks without a good outcome at the start of the event.
pub(crate) fn missing(state: &State, event: &Event) -> String {
    let missing = missing_hooks(state, event);
    let names: Vec<_> = missing.iter().map(|(member, hook)| format!("{} of {member}", hook.phase)).collect();
    format!("{}\n", if names.is_empty() { "nothing is missing".into() } else { names.join(", ") })
}

/// The members which are not in service, one per line.
pub(crate) fn members(state: &State) -> String {
    let mut text = String::new();
    for (member, slot) in &state.slots {
        let events: Vec<_> = slot.events.iter().map(ToString::to_string).collect();
        let owes = if slot.needs_restore { ", owes a restore" } else { "" };
        let by = if events.is_empty() { format!("after {}", slot.by) } else { format!("by {}", events.join(",")) };
        let (name, state, since) = (format!("{}@{}", member.workload, member.vm), slot.state, time(slot.since));
        let _ = writeln!(text, "{name}: {state} since {since} {by}, stint {}{owes}", slot.stint);
    }
    if text.is_empty() { "all are in service\n".into() } else { text }
}
