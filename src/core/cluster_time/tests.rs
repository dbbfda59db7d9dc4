//! The choice of the clock, and when the time is set.

use super::*;

const SECOND: i64 = 1_000;
const HOUR: i64 = 3_600 * SECOND;
const DAY: i64 = 24 * HOUR;

fn wall(ahead: i64) -> ClockReading {
    ClockReading { wall: Some(ahead), ..ClockReading::default() }
}

/// A reading whose endpoint shows the platform's time ahead by `platform`, give or take a second.
fn dated(ahead: i64, platform: i64) -> ClockReading {
    let platform = Interval::new(platform - SECOND, platform + SECOND);
    ClockReading { platform, ..wall(ahead) }
}

fn asking(ahead: i64) -> ClockReading {
    ClockReading { is_asking: true, ..wall(ahead) }
}

fn clocks(steady: i64, wall: i64) -> Clocks {
    Clocks { steady: Timestamp(steady), wall: Timestamp(wall) }
}

/// The decision at once, and the decision after the wait.
fn decided(readings: &[ClockReading], voters: usize) -> [Option<i64>; 2] {
    [true, false].map(|is_patient| agreed_time_ahead(readings, voters, Trust::Unknown, is_patient))
}

/// A leader that is cut off from all others has its own clock and its own endpoint.
#[test]
fn a_leader_alone_guesses_by_its_endpoint_where_it_contradicts_its_clock() {
    let guess = |own| {
        let mut time = ClusterTime::default();
        assert!(!time.agree(clocks(0, 0), &[own], 2), "it waits for the others");
        let late = clocks(AGREES_WITHIN.as_millis().try_into().unwrap(), 10_000);
        assert!(time.agree(late, &[own], 2));
        (time.trust(), time.now(late).0 - 10_000)
    };
    assert_eq!(guess(wall(HOUR)), (Trust::Guessed, HOUR));
    assert_eq!(guess(dated(12 * HOUR, 0)), (Trust::Guessed, 0));
    assert_eq!(guess(dated(HOUR, HOUR)), (Trust::Known, HOUR), "the endpoint confirms the clock");
}

#[test]
fn the_clocks_of_a_majority_count_whatever_the_others_show() {
    let cases: [(&[i64], usize, Option<i64>); 7] = [
        (&[0], 1, Some(0)),
        (&[HOUR, 3, 5], 2, Some(3)),
        (&[0, 3, -HOUR], 2, Some(0)),
        (&[0, HOUR], 2, None),
        (&[0, HOUR, -HOUR], 2, None),
        (&[HOUR, HOUR + 2_000, 1, 2_001, 7], 3, Some(7)),
        (&[], 1, None),
    ];
    for (ahead, needed, expected) in cases {
        assert_eq!(agreed(ahead, needed), expected, "{ahead:?}");
    }
}

#[test]
fn the_platforms_time_comes_before_the_wall_clocks_where_a_majority_of_the_endpoints_shows_it() {
    let cases: [(&[ClockReading], usize, Option<i64>); 8] = [
        // Two of three endpoints agree, though all wall clocks are an hour ahead.
        (&[dated(HOUR, 0), dated(HOUR, 100), wall(HOUR)], 3, Some(0)),
        // A wall clock within the platform's interval is finer.
        (&[dated(HOUR, 7_000), dated(7_300, 7_100), wall(HOUR)], 3, Some(7_300)),
        // No wall clock is, and cluster time cannot be right.
        (&[dated(HOUR, 7_000), dated(HOUR, 7_000), wall(HOUR)], 3, Some(7_000)),
        // One wrong endpoint and its own clock are no majority.
        (&[dated(HOUR, HOUR), wall(2), wall(4)], 3, Some(2)),
        (&[dated(HOUR, HOUR), dated(2, 0), dated(4, 0)], 3, Some(2)),
        // Both voters of a pair, and a single voter.
        (&[dated(DAY, 0), dated(5, 0)], 2, Some(5)),
        (&[dated(-DAY, 0), dated(5, 0)], 2, Some(5)),
        (&[dated(DAY, 400)], 1, Some(0)),
    ];
    for (readings, voters, expected) in cases {
        assert_eq!(decided(readings, voters), [expected; 2], "{readings:?}");
    }
}

#[test]
fn one_endpoint_chooses_between_wall_clocks_that_do_not_agree() {
    // The first result is the decision at once.
    type Case<'a> = (&'a [ClockReading], usize, [Option<i64>; 2]);
    let cases: [Case<'_>; 9] = [
        (&[dated(DAY, 0), wall(9)], 2, [Some(9); 2]),
        (&[wall(-DAY), dated(9, 0)], 2, [Some(9); 2]),
        // The clock may be the wrong endpoint's own, or no clock may be right: the time is unknown.
        (&[dated(DAY, DAY), dated(0, 0)], 2, [None; 2]),
        (&[dated(DAY, HOUR), wall(0)], 2, [None; 2]),
        (&[wall(DAY), wall(0)], 2, [None; 2]),
        // A reading is missing.
        (&[dated(0, 0)], 2, [None, Some(0)]),
        (&[dated(DAY, DAY), asking(0)], 2, [None, Some(DAY)]),
        (&[dated(DAY, 0), asking(9)], 2, [None, Some(9)]),
        // A single voter waits for the first answer.
        (&[asking(7)], 1, [None, Some(7)]),
    ];
    for (readings, voters, expected) in cases {
        assert_eq!(decided(readings, voters), expected, "{readings:?}");
    }
}

#[test]
fn what_is_known_is_changed_by_majorities_only_and_not_while_an_endpoint_is_asked_for_the_first_time() {
    let known = |readings: &[ClockReading]| agreed_time_ahead(readings, 2, Trust::Known, false);
    assert_eq!(known(&[dated(DAY, 0), wall(9)]), None);
    assert_eq!(known(&[wall(DAY), wall(DAY)]), Some(DAY));
    assert_eq!(known(&[dated(DAY, 0), asking(DAY)]), None, "its endpoint may show that both are wrong");
    assert_eq!(known(&[dated(DAY, 0), dated(DAY, 0)]), Some(0));
}

#[test]
fn one_wrong_clock_changes_nothing_though_it_is_the_leaders() {
    let mut time = ClusterTime::default();
    assert!(time.agree(clocks(0, 5_000), &[wall(0), wall(1), wall(2)], 3));
    let jumped = clocks(1_000, HOUR);
    assert_eq!(time.now(jumped), Timestamp(6_001));
    assert!(!time.agree(jumped, &[wall(HOUR - 6_001), wall(0), wall(1)], 3), "the others agree with the time");
    time.applied(jumped, time.now(jumped), false);
    assert_eq!(time.now(clocks(2_000, 7_000)), Timestamp(7_001), "also when it has jumped back");
}

#[test]
fn a_time_that_is_not_known_is_set_though_something_is_open_and_no_other() {
    let clocks_at = |steady: i64| clocks(steady, HOUR);
    let readings = [wall(HOUR), wall(HOUR), wall(0)];
    let mut time = ClusterTime::default();
    time.applied(clocks_at(0), Timestamp(100), true);
    assert_eq!(time.now(clocks_at(10)), Timestamp(110), "as old as the log");
    assert!(time.agree(clocks_at(10), &readings, 3));
    assert!(!time.agree(clocks_at(20), &readings, 3), "something is open");
    time.applied(clocks_at(30), Timestamp(HOUR), false);
    assert!(time.agree(clocks_at(40), &readings, 3));
}

/// The decision after `after` milliseconds, by a leader of two voters whose clocks do not agree.
fn of_an_odd_pair(time: &mut ClusterTime, after: i64) -> (bool, Trust) {
    let clocks = clocks(after, DAY);
    let own = DAY - time.now(clocks).0;
    (time.agree(clocks, &[wall(own), wall(own - DAY)], 2), time.trust())
}

#[test]
fn where_nobody_can_tell_the_leader_guesses_after_a_while() {
    let mut time = ClusterTime::default();
    assert_eq!(of_an_odd_pair(&mut time, 0), (false, Trust::Unknown));
    assert_eq!(of_an_odd_pair(&mut time, 9_999), (false, Trust::Unknown));
    assert_eq!(of_an_odd_pair(&mut time, 10_000), (true, Trust::Guessed));
    assert_eq!(time.now(clocks(10_000, 0)), Timestamp(DAY));
    assert_eq!(of_an_odd_pair(&mut time, 20_000), (false, Trust::Guessed));
    // Later an endpoint shows a date, and no event is open.
    let readings = [dated(0, -DAY), wall(-DAY)];
    assert!(time.agree(clocks(21_000, DAY), &readings, 2));
    assert_eq!((time.trust(), time.now(clocks(21_000, 0))), (Trust::Known, Timestamp(11_000)));
}

#[test]
fn a_guess_moves_no_deadline() {
    let mut time = ClusterTime::default();
    time.applied(clocks(0, DAY), Timestamp(500), true);
    assert_eq!(of_an_odd_pair(&mut time, 0), (false, Trust::Unknown));
    assert_eq!(of_an_odd_pair(&mut time, 10_000), (true, Trust::Guessed));
    assert_eq!(time.now(clocks(10_000, DAY)), Timestamp(10_500), "the log's, carried on");
    // Events opened meanwhile depend on the guess.
    let readings = [dated(DAY, DAY), dated(DAY, DAY)];
    assert!(!time.agree(clocks(11_000, DAY), &readings, 2));
    assert!(!time.adopt(clocks(11_000, DAY), Timestamp(DAY)));
    time.applied(clocks(12_000, DAY), Timestamp(12_500), false);
    assert!(time.agree(clocks(12_000, DAY), &readings, 2));
    assert_eq!(time.trust(), Trust::Known);
}

#[test]
fn whoever_knows_the_time_keeps_it_and_a_new_leader_takes_it_over() {
    let mut follower = ClusterTime::default();
    assert!(follower.follow(Timestamp(HOUR), Timestamp(0), Trust::Known));
    // The new leader has just been started, with a clock a day ahead.
    let mut leader = ClusterTime::default();
    assert!(!follower.follow(Timestamp(DAY), Timestamp(1_000), leader.trust()));
    assert!(!follower.follow(Timestamp(DAY), Timestamp(1_000), Trust::Guessed));
    assert_eq!(follower.now(clocks(2_000, 0)), Timestamp(HOUR + 2_000));
    assert!(leader.adopt(clocks(50, DAY), follower.now(clocks(2_000, 0))));
    assert_eq!((leader.trust(), leader.now(clocks(50, DAY))), (Trust::Known, Timestamp(HOUR + 2_000)));
    assert!(follower.follow(leader.now(clocks(60, DAY)), Timestamp(2_010), leader.trust()));
    assert!(!leader.adopt(clocks(70, DAY), Timestamp(DAY)), "it knows");
    let mut other = ClusterTime::default();
    other.follow(Timestamp(0), Timestamp(0), Trust::Unknown);
    assert!(!other.adopt(clocks(0, 0), Timestamp(HOUR)), "it does not lead");
    assert!(!other.agree(clocks(0, 0), &[wall(0); 2], 2), "nor does it set the time");
}

#[test]
fn a_time_that_the_log_holds_up_is_not_known_and_is_not_set_again_and_again() {
    let mut time = ClusterTime::default();
    time.applied(clocks(0, 0), Timestamp(HOUR), false);
    let behind = [wall(-HOUR), wall(-HOUR), wall(0)];
    assert!(time.agree(clocks(10, 0), &behind, 3));
    assert_eq!((time.trust(), time.now(clocks(10, 0))), (Trust::Guessed, Timestamp(HOUR + 10)));
    assert!(!time.agree(clocks(20, 0), &behind, 3), "nothing has moved");
    // A difference of a second is invisible.
    let near = [wall(-SECOND), wall(-SECOND), wall(0)];
    assert!(time.agree(clocks(30, 0), &near, 3));
    assert_eq!(time.trust(), Trust::Known);
    assert!(!time.agree(clocks(40, 0), &near, 3), "nothing has moved");
}
