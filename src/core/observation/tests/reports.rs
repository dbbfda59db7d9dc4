//! When a document is reported to the log, and by whom.

use super::*;

#[test]
fn a_document_is_reported_once_and_again_when_it_no_longer_counts() {
    let me = VmName::new("a");
    let mut state = State::default();
    let commit = |state: &mut State, command| {
        apply(state, &Entry { at: Timestamp(0), by: me.clone(), command });
    };
    let mut observation = Observation::default();
    commit(&mut state, Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() }));
    assert_eq!(observation.report(&state, &me), None, "nothing is known yet");
    poll(&mut observation, &state, 1, &listing(&[]));
    let first = observation.report(&state, &me).expect("that there is nothing is news");
    commit(&mut state, first);
    assert_eq!(observation.report(&state, &me), None);
    commit(&mut state, Command::MarkDocumentStale(MarkDocumentStale { replica: me.clone() }));
    assert!(observation.report(&state, &me).is_some());
    observation.record_failed_poll();
    assert_eq!(observation.report(&state, &me), None, "it would be discounted again at once");
}

#[test]
fn whose_word_no_longer_counts_speaks_again_when_it_knows_what_is_gone() {
    let me = VmName::new("a");
    let mut state = with_reported(&me, 1, &["e1", "e2"]);
    Arc::make_mut(state.replicas.entry(me.clone()).or_default()).stale_since = Some(Timestamp(0));
    let mut observation = Observation::default();
    observation.adopt_state(&state, &me);
    poll(&mut observation, &state, 2, &listing(&["e2", "e3"]));
    assert_eq!(observation.report(&state, &me), None, "e1 would seem to be announced again");
    poll(&mut observation, &state, 3, &listing(&["e2", "e3"]));
    assert!(observation.report(&state, &me).is_some());
    assert_eq!(reported(&observation), listing(&["e2", "e3"]));

    let mut late = Observation::default();
    poll(&mut late, &state, 4, &listing(&["e2", "e3"]));
    late.adopt_state(&state, &me);
    for second in [5, 6] {
        assert_eq!(late.report(&state, &me), None, "it polled before it knew the log");
        poll(&mut late, &state, second, &listing(&["e2", "e3"]));
    }
    assert!(late.report(&state, &me).is_some());
    assert_eq!(reported(&late), listing(&["e2", "e3"]));
}

#[test]
fn ends_of_notices_are_told_when_it_is_known_what_time_it_is() {
    let me = VmName::new("a");
    let mut state = State::default();
    state.replicas.entry(me.clone()).or_default();
    let mut listed = listing(&["e1"]);
    listed.events[0].not_before = NotBefore::At(Timestamp(900_000));
    let mut observation = Observation::default();
    poll(&mut observation, &state, 1, &listed);
    assert_eq!(observation.report_by(Trust::Unknown, &state, &me), None);
    let mut tell = |trust: Trust| {
        let Some(Command::ReportDocument(ReportDocument { document, .. })) = observation.report_by(trust, &state, &me)
        else {
            return None;
        };
        Arc::make_mut(state.replicas.entry(me.clone()).or_default()).document = Some(document.clone());
        Some(document.events[0].not_before)
    };
    let known = NotBefore::At(Timestamp(900_000));
    let told = [Trust::Guessed, Trust::Guessed, Trust::Known, Trust::Known].map(&mut tell);
    assert_eq!(told, [Some(NotBefore::Unknown), None, Some(known), None]);
}

#[test]
fn a_learner_lets_others_report_first_what_another_one_says_as_long_as_that_counts() {
    let (me, other) = (VmName::new("a"), VmName::new("b"));
    let mut state = State::default();
    state.replicas.entry(me.clone()).or_default();
    state.replicas.entry(other.clone()).or_default();
    let mut observation = Observation::default();
    assert!(!observation.may_wait(Trust::Known, &state, &me, || false), "nothing is due");
    poll(&mut observation, &state, 6, &listing(&["e1"]));
    assert!(!observation.may_wait(Trust::Known, &state, &me, || false), "nobody else says it");
    Arc::make_mut(state.replicas.entry(other.clone()).or_default()).document = Some(listing(&["e1"]));
    assert!(observation.may_wait(Trust::Known, &state, &me, || false));
    assert!(!observation.may_wait(Trust::Known, &state, &me, || true), "it votes");
    Arc::make_mut(state.replicas.entry(other).or_default()).stale_since = Some(Timestamp(0));
    assert!(!observation.may_wait(Trust::Known, &state, &me, || false), "the other's word does not count");
}

#[test]
fn a_restarted_replica_does_not_take_a_first_empty_poll_for_an_end() {
    let me = VmName::new("a");
    let state = with_reported(&me, 1, &["e1"]);
    let mut observation = Observation::default();
    observation.adopt_state(&state, &me);
    poll(&mut observation, &state, 7, &listing(&[]));
    assert_eq!(observation.report(&state, &me), None);
    poll(&mut observation, &state, 8, &listing(&[]));
    assert!(observation.report(&state, &me).is_some());
}

#[test]
fn what_an_earlier_life_reported_is_not_denied_when_it_is_in_the_log_late() {
    let me = VmName::new("a");
    let mut observation = Observation::default();
    observation.adopt_state(&with_reported(&me, 1, &[]), &me);
    poll(&mut observation, &State::default(), 9, &listing(&["e2"]));
    let late = with_reported(&me, 2, &["e1"]);
    observation.adopt_state(&late, &me);
    assert_eq!(reported(&observation), listing(&["e2", "e1"]));
    poll(&mut observation, &State::default(), 10, &listing(&["e2"]));
    observation.adopt_state(&late, &me);
    assert_eq!(reported(&observation), listing(&["e2", "e1"]));
    poll(&mut observation, &State::default(), 11, &listing(&["e2"]));
    observation.adopt_state(&late, &me);
    assert_eq!(reported(&observation), listing(&["e2"]), "once it is taken up two polls are enough");
}
