//! Rules of what is changed without anybody asking.

use super::*;

pub(super) const REPLACE_AFTER: Duration = Duration::from_mins(10);
pub(super) const REJOIN_AFTER: Duration = Duration::from_mins(1);

pub(super) fn member(node: u64) -> Member {
    Member { replica: format!("db-{node}"), address: format!("10.0.0.{node}:7420"), lineage: 0 }
}

pub(super) fn known(node: u64, voter: bool) -> Known {
    Known { node, member: member(node), voter, silent_for: Duration::ZERO, signed_off: false, lag: Some(0) }
}

pub(super) fn silent(node: u64, voter: bool, silent_for: Duration) -> Known {
    Known { silent_for, ..known(node, voter) }
}

pub(super) fn caller(node: u64, member: Member, new: bool) -> Caller {
    Caller { node, member, new }
}

/// Three voters may be, and these are the members.
pub(super) fn view(members: Vec<Known>) -> View {
    View { members, max_voters: 3, replace_after: REPLACE_AFTER, rejoin_after: REJOIN_AFTER, ..View::default() }
}

pub(super) fn three() -> Vec<Known> {
    (0..3).map(|node| known(node, true)).collect()
}

fn three_of_whom_one_is_gone() -> Vec<Known> {
    vec![known(0, true), silent(1, true, REPLACE_AFTER), known(2, true)]
}

#[test]
fn a_cluster_that_is_well_is_left_alone() {
    assert_eq!(due(&view(three())), None);
    let with_learner = three().into_iter().chain([known(3, false)]).collect();
    assert_eq!(due(&view(with_learner)), None);
}

#[test]
fn everybody_new_who_answers_becomes_a_learner_at_once() {
    let callers = vec![caller(3, member(3), true), caller(4, member(4), true), caller(5, member(5), false)];
    let learners = BTreeMap::from([(3, member(3)), (4, member(4))]);
    assert_eq!(due(&View { callers, ..view(three()) }), Some(Due::Add { learners, instead_of: vec![] }));
}

#[test]
fn who_was_removed_does_not_come_back_by_itself() {
    let callers = vec![caller(3, member(3), false)];
    assert_eq!(due(&View { callers, ..view(three()) }), None);
}

#[test]
fn the_lost_disk_of_a_learner_is_replaced() {
    let lost_learner = silent(3, false, SILENT_AFTER);
    let members: Vec<_> = three().into_iter().chain([lost_learner]).collect();
    let callers = vec![caller(9, member(3), true)];
    let expected = Due::Add { learners: BTreeMap::from([(9, member(3))]), instead_of: vec![3] };
    assert_eq!(due(&View { callers: callers.clone(), ..view(members) }), Some(expected));
    let alive = three().into_iter().chain([known(3, false)]).collect();
    assert_eq!(due(&View { callers, ..view(alive) }), None, "two answer by one name");
}

#[test]
fn a_member_that_answers_elsewhere_is_moved() {
    let elsewhere = Member { address: "10.0.9.9:7420".into(), ..member(1) };
    let callers = vec![caller(1, elsewhere.clone(), false)];
    assert_eq!(due(&View { callers, ..view(three()) }), Some(Due::Move(BTreeMap::from([(1, elsewhere)]))));
}

#[test]
fn a_learner_votes_where_there_is_room() {
    let members = vec![known(0, true), known(1, true), known(4, false), known(3, false)];
    assert_eq!(due(&view(members)), Some(Due::Promote { learner: 4 }));
    let lagging = Known { lag: Some(LAG_AT_MOST + 1), ..known(4, false) };
    let unknown = Known { lag: None, ..known(5, false) };
    let away = silent(6, false, SILENT_AFTER);
    let members = vec![known(0, true), known(1, true), lagging, unknown, away];
    assert_eq!(due(&view(members)), None);
}

#[test]
fn a_voter_that_is_gone_for_long_is_replaced_by_a_learner_that_is_up_to_date() {
    let with = |learner: Known| three_of_whom_one_is_gone().into_iter().chain([learner]).collect();
    assert_eq!(due(&view(with(known(3, false)))), Some(Due::Replace { gone: 1, learner: 3 }));
    let lagging = Known { lag: Some(LAG_AT_MOST + 1), ..known(3, false) };
    assert_eq!(due(&view(with(lagging))), None);
    assert_eq!(due(&view(with(silent(3, false, SILENT_AFTER)))), None);
    assert_eq!(due(&view(three_of_whom_one_is_gone())), None, "no smaller set of voters is made");
    let mut just_now = with(known(3, false));
    just_now[1].silent_for = REPLACE_AFTER.saturating_sub(Duration::from_millis(1));
    assert_eq!(due(&view(just_now)), None);
}

#[test]
fn of_two_that_are_gone_the_one_that_is_gone_longest_is_replaced_first() {
    let members = vec![
        known(0, true),
        silent(1, true, REPLACE_AFTER),
        silent(2, true, REPLACE_AFTER * 2),
        known(3, true),
        known(4, true),
        known(5, false),
        known(6, false),
    ];
    let due = due(&View { max_voters: 5, ..view(members) });
    assert_eq!(due, Some(Due::Replace { gone: 2, learner: 5 }));
}

#[test]
fn without_a_quorum_nothing_is_due() {
    let gone = |node| silent(node, true, REPLACE_AFTER);
    let members = vec![known(0, true), gone(1), gone(2), known(3, false)];
    let callers = vec![caller(4, member(4), true)];
    assert_eq!(due(&View { callers, half_changed: true, ..view(members) }), None);
}

#[test]
fn a_change_that_was_cut_short_is_ended_before_the_next() {
    let members = three_of_whom_one_is_gone().into_iter().chain([known(3, false)]).collect();
    assert_eq!(due(&View { half_changed: true, ..view(members) }), Some(Due::Finish));
}
