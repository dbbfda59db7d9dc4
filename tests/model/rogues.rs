//! Commands which a faulty leader could propose.

use allclear::core::model::attempt::WaiverReason;
use allclear::core::model::claim::Reason;
use allclear::core::model::command::{
    BeginAttempt, BeginLastCall, ClaimApproval, Command, ExpireAttempt, ForgetEvent, GiveBackSlots, MarkDocumentStale,
    TakeSlots, WaiveHook,
};
use allclear::core::model::id::{EventId, VmName};
use allclear::core::model::time::Timestamp;
use allclear::core::model::workload::{Intent, Member, Phase, Workload};
use allclear::core::schedule::affected_members::stints_of;

use crate::world::{Cluster, World, event_id, name};

/// All commands which a faulty leader could propose.
pub(crate) fn rogues(cluster: &Cluster, world: &World) -> Vec<Command> {
    (0..cluster.events.len()).flat_map(|event| rogues_of(cluster, world, event)).collect()
}

fn rogues_of(cluster: &Cluster, world: &World, number: usize) -> Vec<Command> {
    let event = event_id(number);
    let mut found = vec![
        Command::TakeSlots(TakeSlots { event: event.clone() }),
        Command::GiveBackSlots(GiveBackSlots { event: event.clone() }),
        Command::BeginLastCall(BeginLastCall { event: event.clone() }),
        Command::ForgetEvent(ForgetEvent { event: event.clone() }),
    ];
    for replica in (0..cluster.replicas).map(name) {
        for reason in
            [Reason::Prepared, Reason::NothingToPrepare, Reason::BudgetSpent, Reason::Policy, Reason::Operator]
        {
            let (event, approver, until) = (event.clone(), replica.clone(), Timestamp(world.now().0 + 5_000));
            let stints = world.log.open_event(&event).map(|event| stints_of(&world.log, event)).unwrap_or_default();
            let decision = world.log.open_event(&event).map_or(0, |event| event.decided_at_revision);
            let earlier = stints.iter().map(|(member, stint)| (member.clone(), stint - 1)).collect();
            if !stints.is_empty() {
                let (event, approver) = (event.clone(), approver.clone());
                found.push(Command::ClaimApproval(ClaimApproval {
                    event,
                    approver,
                    reason,
                    decided_at_revision: decision,
                    stints: earlier,
                    until,
                    is_last_resort: false,
                }));
            }
            found.push(Command::ClaimApproval(ClaimApproval {
                event,
                approver,
                reason,
                decided_at_revision: decision,
                stints,
                until,
                is_last_resort: false,
            }));
        }
        found.push(Command::MarkDocumentStale(MarkDocumentStale { replica: replica.clone() }));
        let Some(workload) = &cluster.workload else { continue };
        for vm in &cluster.events[number] {
            let member = Member { vm: name(*vm), workload: workload.name.clone() };
            found.extend(rogue_hooks(world, workload, &event, &member, &replica));
        }
    }
    let open = world
        .log
        .open
        .get(&event)
        .into_iter()
        .flat_map(|event| &event.attempts)
        .filter(|attempt| attempt.outcome.is_none());
    found.extend(
        open.map(|attempt| Command::ExpireAttempt(ExpireAttempt { event: event.clone(), attempt: attempt.id })),
    );
    found
}

fn rogue_hooks(world: &World, workload: &Workload, event: &EventId, member: &Member, on: &VmName) -> Vec<Command> {
    let mut found = Vec::new();
    let deadline = Timestamp(world.now().0 + 60_000);
    for phase in [Phase::Failover, Phase::Drain, Phase::Restore] {
        for (hook, declared) in workload.hooks_of(phase) {
            let intents =
                [(true, Intent::Run), (declared.can_undo, Intent::Undo), (declared.can_confirm, Intent::Confirm)];
            for (_, intent) in intents.into_iter().filter(|(can, _)| *can) {
                let (event, member, on) = (event.clone(), member.clone(), on.clone());
                found.push(Command::BeginAttempt(BeginAttempt { event, member, hook, intent, on, deadline }));
            }
            let (event, member, why) = (event.clone(), member.clone(), WaiverReason::Unreachable);
            found.push(Command::WaiveHook(WaiveHook { event, member, hook, why }));
        }
    }
    found
}
