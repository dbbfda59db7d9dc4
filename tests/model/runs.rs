//! Clusters explored by every run of the suite, and the detection of each mistake.

use allclear::core::model::document::Source;
use allclear::core::model::workload::OnAbsent;
use stateright::{Checker, HasDiscoveries, Model};

use crate::clusters::{
    askable, asked, changing, cluster, dialled, drilling, failover, for_one_vm, growing, long_notice, of_a_group,
    one_at_a_time, one_step, patient, reposting, returning, reversible, sick, two_events, two_steps, unrestored, with,
};
use crate::explore::explored;
use crate::mutant::Mutant;
use crate::world::{Cluster, Trouble};
use crate::{DRILL, L1, L2, L5, L7, LIFE, S1, S2, S3, S4, S7, S8, S10, S11, S12, S14, WISH};

/// Explores the whole cluster, or as many states as `ALLCLEAR_STATES` says.
#[track_caller]
fn check(cluster: Cluster) {
    let most_states =
        std::env::var("ALLCLEAR_STATES").ok().and_then(|number| number.parse().ok()).unwrap_or(usize::MAX);
    println!("{}: {}", std::panic::Location::caller().line(), explored(cluster, None, most_states));
}

fn expect(mutant: Mutant, property: &'static str, cluster: Cluster) {
    let checker = Cluster { mutant, ..cluster }.checker().threads(2).finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.spawn_bfs().join();
    let found = checker.discoveries();
    assert!(found.contains_key(property), "{mutant:?} did not break '{property}' but {:?}", found.keys());
}

#[test]
fn a_user_initiated_event_is_safe_without_faults() {
    check(cluster(3, Source::User, Some(two_steps())));
}

#[test]
fn an_event_of_the_platform_is_safe_without_faults() {
    check(cluster(3, Source::Platform, Some(two_steps())));
}

#[test]
fn a_replica_is_lost_while_a_hook_runs() {
    check(with(1, Trouble::Losses, cluster(2, Source::User, Some(one_step()))));
}

#[test]
fn a_replica_is_lost_while_a_failover_runs_that_can_be_asked() {
    check(with(1, Trouble::Losses, cluster(2, Source::Platform, Some(failover()))));
}

#[test]
fn a_replica_is_lost_while_an_approval_is_posted() {
    check(with(1, Trouble::Losses, cluster(3, Source::User, None)));
}

#[test]
fn twice_something_is_lost_while_an_approval_is_posted() {
    check(with(2, Trouble::Losses, cluster(2, Source::User, None)));
}

#[test]
fn a_replica_of_three_is_lost_while_two_hooks_run() {
    check(with(1, Trouble::Losses, cluster(3, Source::User, Some(two_steps()))));
}

#[test]
fn a_replica_of_three_is_lost_while_a_failover_runs_that_can_be_asked() {
    check(with(1, Trouble::Losses, cluster(3, Source::User, Some(failover()))));
}

#[test]
fn a_proposal_arrives_once_more_and_late() {
    check(with(1, Trouble::Delays, cluster(2, Source::Platform, Some(one_step()))));
    check(with(1, Trouble::Delays, cluster(3, Source::User, None)));
}

#[test]
fn a_leader_proposes_anything_at_all() {
    for source in [Source::Platform, Source::User] {
        check(with(1, Trouble::Rogues, cluster(2, source, Some(one_step()))));
    }
}

#[test]
fn a_leader_proposes_anything_at_all_twice() {
    check(with(2, Trouble::Rogues, cluster(2, Source::User, Some(failover()))));
}

#[test]
fn a_proposal_for_a_failover_arrives_once_more_and_late() {
    check(with(1, Trouble::Delays, cluster(3, Source::User, Some(failover()))));
}

/// An event gives back and is prepared anew, so each failure is the beginning of many.
fn reversing() -> Cluster {
    Cluster { failures: Some(2), ..cluster(2, Source::Platform, Some(reversible())) }
}

#[test]
fn what_failed_is_taken_back_though_a_replica_is_lost() {
    check(with(1, Trouble::Losses, reversing()));
}

#[test]
fn a_leader_proposes_to_take_back_anything_at_all() {
    check(with(1, Trouble::Rogues, Cluster { source: Source::User, ..reversing() }));
}

#[test]
fn two_events_of_a_group_come_one_after_the_other() {
    check(two_events(cluster(3, Source::Platform, None)));
}

#[test]
fn a_leader_proposes_anything_at_all_for_two_events_of_a_group() {
    check(with(1, Trouble::Rogues, two_events(cluster(2, Source::User, None))));
}

#[test]
fn an_event_that_had_started_or_was_gone_is_to_come_again() {
    check(returning(1, patient(1, cluster(2, Source::User, Some(one_step())))));
    check(returning(1, cluster(3, Source::Platform, None)));
    check(returning(1, patient(0, two_events(cluster(2, Source::Platform, Some(one_step()))))));
}

#[test]
fn an_accepted_approval_is_posted_once_more() {
    check(reposting(with(1, Trouble::Losses, cluster(2, Source::Platform, None))));
    check(reposting(returning(1, cluster(2, Source::User, None))));
}

#[test]
fn operators_ask_for_anything_at_all() {
    check(asked(2, cluster(2, Source::User, Some(one_step()))));
    check(asked(1, two_events(cluster(2, Source::Platform, None))));
}

#[test]
fn operators_have_an_event_with_a_long_notice_prepared_early() {
    check(asked(2, long_notice(cluster(2, Source::Platform, Some(one_step())))));
    check(asked(1, with(1, Trouble::Losses, long_notice(cluster(2, Source::Platform, Some(one_step()))))));
}

#[test]
fn an_event_comes_while_a_drill_is_under_way() {
    check(drilling(cluster(2, Source::User, Some(one_step()))));
}

#[test]
fn two_events_of_one_vm_prepare_its_workload_one_after_the_other() {
    check(for_one_vm(cluster(2, Source::User, Some(one_step()))));
}

#[test]
fn who_is_the_primary_changes_at_any_moment() {
    check(changing(1, cluster(2, Source::User, Some(failover()))));
}

#[test]
fn a_workload_that_dials_in_goes_away_and_comes_back_at_any_moment() {
    for on_absent in [OnAbsent::Hold, OnAbsent::Skip, OnAbsent::Command] {
        check(changing(1, cluster(2, Source::User, Some(dialled(on_absent, one_step())))));
    }
}

#[test]
fn three_events_of_a_group_come_one_after_the_other() {
    for events in [[&[0][..], &[1], &[2]], [&[0], &[0], &[1]], [&[0], &[1], &[0, 1]]] {
        check(patient(0, of_a_group(&events, cluster(3, Source::Platform, Some(one_step())))));
    }
}

#[test]
fn three_events_of_a_group_of_which_a_hook_fails() {
    check(patient(1, of_a_group(&[&[0], &[1], &[0, 1]], cluster(3, Source::User, Some(one_step())))));
}

#[test]
fn members_fail_by_themselves() {
    check(sick(2, patient(0, of_a_group(&[&[0], &[1]], cluster(2, Source::User, Some(unrestored()))))));
    check(sick(1, patient(0, of_a_group(&[&[0], &[0, 1]], cluster(3, Source::Platform, Some(one_step()))))));
}

#[test]
fn an_event_grows() {
    check(growing(0, 1, patient(0, of_a_group(&[&[0], &[2]], cluster(3, Source::Platform, Some(one_step()))))));
}

#[test]
fn operators_retry_the_failed_hook_of_one_of_two_events() {
    check(asked(1, patient(1, of_a_group(&[&[0], &[1]], cluster(2, Source::Platform, Some(one_step()))))));
    check(asked(1, Cluster { failures: Some(1), ..cluster(2, Source::User, Some(reversible())) }));
}

#[test]
fn operators_hold_one_of_two_events() {
    check(asked(1, patient(0, of_a_group(&[&[0], &[1]], cluster(2, Source::Platform, Some(one_step()))))));
}

#[test]
fn every_mutant_is_seen() {
    let calm = || cluster(2, Source::User, Some(one_step()));
    let lossy = |source, workload| with(1, Trouble::Losses, cluster(2, source, workload));
    let rogue = || with(1, Trouble::Rogues, cluster(2, Source::User, Some(one_step())));
    expect(Mutant::ClaimUnguarded, S1, rogue());
    expect(Mutant::ClaimTwice, S2, rogue());
    expect(Mutant::PostUnconfirmed, S3, lossy(Source::User, None));
    expect(Mutant::ApproveRefused, S3, lossy(Source::User, None));
    let grows = growing(0, 1, of_a_group(&[&[0]], cluster(2, Source::Platform, Some(one_step()))));
    expect(Mutant::PostUndecided, S10, grows);
    expect(Mutant::Rewrite, LIFE, lossy(Source::User, Some(one_step())));
    expect(Mutant::RunAgain, S7, lossy(Source::User, Some(one_step())));
    expect(Mutant::RestoreEarly, S8, rogue());
    expect(Mutant::UndoDone, S8, with(1, Trouble::Rogues, cluster(2, Source::User, Some(reversible()))));
    expect(Mutant::ClaimAgainstWish, WISH, asked(1, rogue()));
    expect(Mutant::ApproveUnseen, WISH, asked(1, calm()));
    expect(Mutant::ForgetRestoring, S12, calm());
    expect(Mutant::GoBack, LIFE, calm());
    expect(Mutant::ClaimDrill, S14, drilling(calm()));
    expect(Mutant::StartDrill, DRILL, drilling(calm()));
    expect(Mutant::DrillOn, DRILL, drilling(calm()));
    expect(Mutant::NeverDiscount, L1, lossy(Source::User, Some(one_step())));
}

#[test]
fn every_mutant_that_takes_somebody_out_wrongly_is_seen() {
    let group =
        |events: &[&[usize]], workload| patient(1, of_a_group(events, cluster(3, Source::Platform, Some(workload))));
    let two = || group(&[&[0], &[1]], one_step());
    let rogue = |cluster| with(1, Trouble::Rogues, cluster);
    expect(Mutant::TakeBeyondLimit, S4, rogue(two()));
    expect(Mutant::TakeBesideTheSick, S4, rogue(sick(1, two())));
    expect(Mutant::RepairAnything, S4, rogue(two()));
    expect(Mutant::BeginWithoutSlot, S4, rogue(two()));
    expect(Mutant::BeginAboveLimit, S4, rogue(Cluster { is_patient: false, ..sick(1, group(&[&[0]], one_step())) }));
    expect(Mutant::LastCallEarly, S4, rogue(two()));
    expect(Mutant::ClaimOldStint, S14, rogue(group(&[&[0]], one_step())));
    expect(Mutant::CountOldStint, S1, asked(2, group(&[&[0]], one_step())));
    expect(Mutant::ForgetDebt, S12, two());
    expect(Mutant::RestoredByFailure, S12, two());
    expect(Mutant::GiveBackForEver, L7, two());
    expect(Mutant::NeverGiveBack, L5, two());
    expect(Mutant::NeverTake, L5, group(&[&[1], &[0]], one_step()));
    expect(Mutant::RestoreKeptOut, S8, rogue(two()));
}

#[test]
fn every_mutant_that_moves_a_primary_wrongly_is_seen() {
    let two = || patient(1, of_a_group(&[&[0, 1]], cluster(3, Source::Platform, Some(failover()))));
    expect(Mutant::FailoverBeside, S11, with(1, Trouble::Rogues, two()));
    let led = || patient(1, of_a_group(&[&[0]], cluster(2, Source::Platform, Some(reversible()))));
    expect(Mutant::DrainPrimary, S11, with(1, Trouble::Rogues, changing(1, led())));
}

#[test]
fn every_mutant_that_begins_a_hook_out_of_turn_is_seen() {
    let two = || Cluster { events: vec![vec![0], vec![1]], ..cluster(2, Source::User, Some(one_at_a_time())) };
    expect(Mutant::RunBeside, S7, with(1, Trouble::Rogues, two()));
    let for_one_vm = || for_one_vm(cluster(2, Source::User, Some(one_step())));
    expect(Mutant::RunBesideEvent, S7, with(1, Trouble::Rogues, for_one_vm()));
    expect(Mutant::AskAgain, L2, with(1, Trouble::Rogues, cluster(2, Source::Platform, Some(askable()))));
}
