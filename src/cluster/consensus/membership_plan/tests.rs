//! Rules of automatic membership changes.

use super::*;

pub(super) const REPLACE_AFTER: Duration = Duration::from_mins(10);
pub(super) const REJOIN_AFTER: Duration = Duration::from_mins(1);

pub(super) fn member(node: u64) -> RaftMember {
    RaftMember { replica: format!("db-{node}"), address: format!("10.0.0.{node}:7420"), lineage: 0 }
}

pub(super) fn known(node: u64, voter: bool) -> MemberState {
    let (silent_for, signed_off) = (Duration::ZERO, false);
    MemberState { node, member: member(node), voter, silent_for, signed_off, lag: Some(0), excluded: false }
}

pub(super) fn silent(node: u64, voter: bool, silent_for: Duration) -> MemberState {
    MemberState { silent_for, ..known(node, voter) }
}

pub(super) fn caller(node: u64, member: RaftMember, new: bool) -> JoinCandidate {
    JoinCandidate { node, member, new }
}

/// At most three voters, and these members.
pub(super) fn view(members: Vec<MemberState>) -> MembershipView {
    MembershipView {
        members,
        max_voters: 3,
        replace_after: REPLACE_AFTER,
        rejoin_after: REJOIN_AFTER,
        ..MembershipView::default()
    }
}

pub(super) fn three() -> Vec<MemberState> {
    (0..3).map(|node| known(node, true)).collect()
}

fn three_of_whom_one_is_gone() -> Vec<MemberState> {
    vec![known(0, true), silent(1, true, REPLACE_AFTER), known(2, true)]
}

#[test]
fn a_cluster_that_is_well_is_left_alone() {
    assert_eq!(membership_change(&view(three())), None);
    let with_learner = three().into_iter().chain([known(3, false)]).collect();
    assert_eq!(membership_change(&view(with_learner)), None);
}

#[test]
fn everybody_new_who_answers_becomes_a_learner_at_once() {
    let callers = vec![caller(3, member(3), true), caller(4, member(4), true), caller(5, member(5), false)];
    let learners = BTreeMap::from([(3, member(3)), (4, member(4))]);
    assert_eq!(
        membership_change(&MembershipView { callers, ..view(three()) }),
        Some(MembershipChange::Add { learners, instead_of: vec![] })
    );
}

#[test]
fn who_was_removed_does_not_come_back_by_itself() {
    let callers = vec![caller(3, member(3), false)];
    assert_eq!(membership_change(&MembershipView { callers, ..view(three()) }), None);
}

#[test]
fn the_lost_disk_of_a_learner_is_replaced() {
    let lost_learner = silent(3, false, SILENT_AFTER);
    let members: Vec<_> = three().into_iter().chain([lost_learner]).collect();
    let callers = vec![caller(9, member(3), true)];
    let expected = MembershipChange::Add { learners: BTreeMap::from([(9, member(3))]), instead_of: vec![3] };
    assert_eq!(membership_change(&MembershipView { callers: callers.clone(), ..view(members) }), Some(expected));
    let alive = three().into_iter().chain([known(3, false)]).collect();
    assert_eq!(membership_change(&MembershipView { callers, ..view(alive) }), None, "two answer by one name");
}

#[test]
fn a_member_that_answers_elsewhere_is_moved() {
    let elsewhere = RaftMember { address: "10.0.9.9:7420".into(), ..member(1) };
    let callers = vec![caller(1, elsewhere.clone(), false)];
    assert_eq!(
        membership_change(&MembershipView { callers, ..view(three()) }),
        Some(MembershipChange::Move(BTreeMap::from([(1, elsewhere)])))
    );
}

#[test]
fn a_learner_votes_where_there_is_room() {
    let members = vec![known(0, true), known(1, true), known(4, false), known(3, false)];
    assert_eq!(membership_change(&view(members)), Some(MembershipChange::Promote { learner: 4 }));
    let lagging = MemberState { lag: Some(LAG_AT_MOST + 1), ..known(4, false) };
    let unknown = MemberState { lag: None, ..known(5, false) };
    let away = silent(6, false, SILENT_AFTER);
    let members = vec![known(0, true), known(1, true), lagging, unknown, away];
    assert_eq!(membership_change(&view(members)), None);
}

#[test]
fn a_removed_replica_gets_no_vote_from_a_removal_that_was_cut_short() {
    let removed = || MemberState { excluded: true, ..known(3, false) };
    assert_eq!(membership_change(&view(vec![known(0, true), known(1, true), removed()])), None);
    let members = three_of_whom_one_is_gone().into_iter().chain([removed()]).collect();
    assert_eq!(membership_change(&view(members)), None);
}

#[test]
fn a_voter_that_is_gone_for_long_is_replaced_by_a_learner_that_is_up_to_date() {
    let with = |learner: MemberState| three_of_whom_one_is_gone().into_iter().chain([learner]).collect();
    assert_eq!(
        membership_change(&view(with(known(3, false)))),
        Some(MembershipChange::Replace { gone: 1, learner: 3 })
    );
    let lagging = MemberState { lag: Some(LAG_AT_MOST + 1), ..known(3, false) };
    assert_eq!(membership_change(&view(with(lagging))), None);
    assert_eq!(membership_change(&view(with(silent(3, false, SILENT_AFTER)))), None);
    assert_eq!(membership_change(&view(three_of_whom_one_is_gone())), None, "no smaller set of voters is made");
    let mut just_now = with(known(3, false));
    just_now[1].silent_for = REPLACE_AFTER.saturating_sub(Duration::from_millis(1));
    assert_eq!(membership_change(&view(just_now)), None);
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
    let due = membership_change(&MembershipView { max_voters: 5, ..view(members) });
    assert_eq!(due, Some(MembershipChange::Replace { gone: 2, learner: 5 }));
}

#[test]
fn without_a_quorum_nothing_is_due() {
    let gone = |node| silent(node, true, REPLACE_AFTER);
    let members = vec![known(0, true), gone(1), gone(2), known(3, false)];
    let callers = vec![caller(4, member(4), true)];
    assert_eq!(membership_change(&MembershipView { callers, half_changed: true, ..view(members) }), None);
}

#[test]
fn a_change_that_was_cut_short_is_ended_before_the_next() {
    let members = three_of_whom_one_is_gone().into_iter().chain([known(3, false)]).collect();
    assert_eq!(
        membership_change(&MembershipView { half_changed: true, ..view(members) }),
        Some(MembershipChange::Finish)
    );
}
