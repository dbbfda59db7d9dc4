//! Rules of a voter with a lost disk: when the new disk joins, when the new disk votes, and who decides when the
//! cluster cannot.

use super::tests::*;
use super::*;

const LOST: u64 = 1;
const NEW: u64 = 9;

/// The new disk of the lost voter.
fn new(voter: bool) -> MemberState {
    MemberState { member: member(LOST), ..known(NEW, voter) }
}

fn three_of_whom_one_is_silent(silent_for: Duration) -> Vec<MemberState> {
    vec![known(0, true), silent(LOST, true, silent_for), known(2, true)]
}

fn with_its_new_disk(silent_for: Duration) -> Vec<MemberState> {
    three_of_whom_one_is_silent(silent_for).into_iter().chain([new(false)]).collect()
}

fn asks() -> Vec<JoinCandidate> {
    vec![caller(NEW, member(LOST), true)]
}

fn askers(nodes: &[u64]) -> BTreeMap<String, BTreeSet<u64>> {
    [(member(LOST).replica, nodes.iter().copied().collect())].into()
}

#[test]
fn the_new_disk_of_a_voter_joins_as_a_learner_as_soon_as_the_old_one_is_silent() {
    let members = three_of_whom_one_is_silent(SILENT_AFTER);
    let expected = MembershipChange::Add { learners: BTreeMap::from([(NEW, member(LOST))]), instead_of: vec![] };
    assert_eq!(membership_change(&MembershipView { callers: asks(), ..view(members) }), Some(expected));
    assert_eq!(membership_change(&MembershipView { callers: asks(), ..view(three()) }), None, "two answer by one name");
    let known_already = vec![caller(NEW, member(LOST), false)];
    assert_eq!(
        membership_change(&MembershipView {
            callers: known_already,
            ..view(three_of_whom_one_is_silent(SILENT_AFTER))
        }),
        None
    );
}

#[test]
fn a_second_disk_that_is_lost_makes_room_for_the_third() {
    let second = MemberState { silent_for: SILENT_AFTER, ..new(false) };
    let members = three_of_whom_one_is_silent(REJOIN_AFTER).into_iter().chain([second]).collect();
    let callers = vec![caller(10, member(LOST), true)];
    let expected = MembershipChange::Add { learners: BTreeMap::from([(10, member(LOST))]), instead_of: vec![NEW] };
    assert_eq!(membership_change(&MembershipView { callers, ..view(members) }), Some(expected));
}

#[test]
fn it_votes_in_the_place_of_the_lost_one_once_that_is_out_of_contact_for_long_enough() {
    let rejoins = Some(MembershipChange::Rejoin { lost: LOST, learner: NEW });
    let just_not = REJOIN_AFTER.saturating_sub(Duration::from_millis(1));
    assert_eq!(membership_change(&view(with_its_new_disk(just_not))), None);
    assert_eq!(membership_change(&view(with_its_new_disk(REJOIN_AFTER))), rejoins);
    assert_eq!(membership_change(&view(with_its_new_disk(REPLACE_AFTER))), rejoins, "no other learner takes its place");
    let mut lagging = with_its_new_disk(REJOIN_AFTER);
    lagging[3].lag = Some(LAG_AT_MOST + 1);
    assert_eq!(membership_change(&view(lagging)), None);
    let half = MembershipView { half_changed: true, ..view(with_its_new_disk(REJOIN_AFTER)) };
    assert_eq!(membership_change(&half), Some(MembershipChange::Finish));
}

#[test]
fn where_the_lost_one_signed_off_nobody_waits() {
    let signed_off = |silent_for| {
        let mut members = with_its_new_disk(silent_for);
        members[1].signed_off = true;
        membership_change(&view(members))
    };
    assert_eq!(signed_off(SILENT_AFTER), Some(MembershipChange::Rejoin { lost: LOST, learner: NEW }));
    assert_eq!(signed_off(Duration::ZERO), None, "it answers");
}

#[test]
fn of_a_pair_nobody_comes_back_without_an_operator() {
    let pair = vec![known(0, true), silent(LOST, true, REPLACE_AFTER), known(2, true)];
    let two: Vec<_> = pair.into_iter().take(2).collect();
    // Regardless of the remaining voter: both have to vote, and the lost voter never will.
    assert_eq!(membership_change(&MembershipView { callers: asks(), ..view(two) }), None);
    assert!(!may_rejoin(2) && may_rejoin(3));
    let answers_again = vec![known(0, true), known(LOST, true)];
    assert_eq!(membership_change(&MembershipView { callers: asks(), ..view(answers_again) }), None);
}

#[test]
fn two_that_ask_under_one_name_are_both_refused() {
    let members = three_of_whom_one_is_silent(REJOIN_AFTER);
    let two = MembershipView { callers: asks(), askers: askers(&[NEW, 10]), ..view(members) };
    assert_eq!(membership_change(&two), None);
    assert_eq!(contested(&two), askers(&[NEW, 10]));
    let one =
        MembershipView { callers: asks(), askers: askers(&[NEW]), ..view(three_of_whom_one_is_silent(REJOIN_AFTER)) };
    assert!(matches!(membership_change(&one), Some(MembershipChange::Add { .. })) && contested(&one).is_empty());
    let beside_a_learner = MembershipView { askers: askers(&[10]), ..view(with_its_new_disk(REJOIN_AFTER)) };
    assert_eq!(membership_change(&beside_a_learner), None);
    let beside_the_voter = MembershipView { askers: askers(&[10]), ..view(three()) };
    assert_eq!(contested(&beside_the_voter), askers(&[LOST, 10]));
}

#[test]
fn one_name_never_has_two_votes() {
    let room = MembershipView { max_voters: 5, ..view(with_its_new_disk(SILENT_AFTER)) };
    assert_eq!(membership_change(&room), None, "its vote is not taken from it yet");
    // Another voter is gone for longer than the lost disk.
    let members = vec![
        known(0, true),
        silent(LOST, true, SILENT_AFTER),
        silent(2, true, REPLACE_AFTER),
        known(3, true),
        known(4, true),
        new(false),
    ];
    assert_eq!(membership_change(&MembershipView { max_voters: 5, ..view(members) }), None);
}

#[test]
fn what_is_left_of_a_lost_disk_is_forgotten() {
    let forgets = Some(MembershipChange::Forget { nodes: [LOST].into() });
    // An interrupted change, or a quicker learner, leaves the lost disk as a learner.
    let as_learner = |silent_for| {
        let members = vec![known(0, true), silent(LOST, false, silent_for), known(2, true), new(true)];
        membership_change(&view(members))
    };
    assert_eq!(as_learner(SILENT_AFTER), forgets);
    assert_eq!(as_learner(Duration::ZERO), None, "both answer");
    let both_learn: Vec<_> = three_of_whom_one_is_silent(SILENT_AFTER).into_iter().chain([new(false)]).collect();
    let both_learn =
        both_learn.into_iter().map(|known| MemberState { voter: known.voter && known.node != LOST, ..known });
    assert_eq!(membership_change(&view(both_learn.collect())), forgets);
    // Two votes of one name, by any cause.
    let both_vote = |silent_for| {
        let members = three_of_whom_one_is_silent(silent_for).into_iter().chain([new(true)]).collect();
        membership_change(&MembershipView { max_voters: 5, ..view(members) })
    };
    assert_eq!(both_vote(REJOIN_AFTER), forgets);
    assert_eq!(both_vote(SILENT_AFTER), None);
}

#[test]
fn the_one_left_behind_is_the_voter_of_the_same_name() {
    let nodes = [(0, member(0)), (LOST, member(LOST)), (NEW, member(LOST))];
    let membership = Membership::new(vec![[0, LOST].into()], BTreeMap::from(nodes)).unwrap();
    assert_eq!(left_behind(&membership, &member(LOST).replica, NEW), Some(LOST));
    assert_eq!(left_behind(&membership, &member(LOST).replica, LOST), None);
    assert_eq!(left_behind(&membership, &member(0).replica, 0), None);
}
