//! Rules of bootstrap.

use super::*;

type Next = Result<BTreeMap<u64, String>, String>;

fn greeting(replica: &str, node: u64) -> pb::Greeting {
    pb::Greeting {
        cluster: "orders".into(),
        replica: replica.into(),
        node,
        replicas: ["a", "b", "c"].map(Into::into).into(),
        signs_off: false,
    }
}

fn new(replica: &str, node: u64) -> HelloReply {
    HelloReply { greeting: greeting(replica, node), membership: None, leader: None, refused: None }
}

fn formed(members: &[(u64, &str)]) -> HelloReply {
    let voters: BTreeSet<u64> = members.iter().map(|(node, _)| *node).collect();
    let member = |(node, name): &(u64, &str)| (*node, RaftMember { replica: (*name).into(), ..RaftMember::default() });
    let members: BTreeMap<u64, RaftMember> = members.iter().map(member).collect();
    HelloReply {
        greeting: greeting("b", 2),
        membership: Some(Membership::new(vec![voters], members).unwrap()),
        leader: None,
        refused: None,
    }
}

/// Asks all other replicas; all replicas are future voters.
fn next(own: &pb::Greeting, address: &str, answers: Vec<Result<HelloReply, String>>) -> Next {
    next_of(own, address, &["a", "b", "c"], &["a", "b", "c"], answers)
}

fn next_of(
    own: &pb::Greeting,
    address: &str,
    founders: &[&str],
    needed: &[&str],
    answers: Vec<Result<HelloReply, String>>,
) -> Next {
    let others = ["a", "b", "c"].into_iter().filter(|name| *name != own.replica).map(String::from);
    let expected = Expected { address, founders, needed, rejoin_after: Duration::from_mins(1) };
    super::next(own, &expected, others.zip(answers).collect())
}

fn waits(next: &Next, because: &str) {
    assert!(matches!(next, Err(reason) if reason.contains(because)), "{next:?}");
}

#[test]
fn the_first_forms_with_everybody_when_all_are_new() {
    let next = next(&greeting("a", 1), "here:1", vec![Ok(new("b", 2)), Ok(new("c", 3))]);
    assert_eq!(next, Ok([(1, "a".into()), (2, "b".into()), (3, "c".into())].into()));
}

#[test]
fn nobody_but_the_first_forms() {
    waits(&next(&greeting("b", 2), "here:1", vec![Ok(new("a", 1)), Ok(new("c", 3))]), "waiting for a");
    waits(&next(&greeting("c", 3), "here:1", vec![Ok(new("a", 1)), Ok(new("b", 2))]), "waiting for a");
}

#[test]
fn a_silent_replica_or_another_list_holds_formation_up() {
    waits(&next(&greeting("a", 1), "here:1", vec![Ok(new("b", 2)), Err("c is away".into())]), "c is away");
    let mut other = new("c", 3);
    other.greeting.replicas.reverse();
    waits(
        &next(&greeting("a", 1), "here:1", vec![Ok(new("b", 2)), Ok(other)]),
        "c lists the replicas c, b, a, and this replica lists a, b, c",
    );
}

#[test]
fn a_copied_directory_holds_formation_up() {
    waits(&next(&greeting("a", 1), "here:1", vec![Ok(new("b", 2)), Ok(new("c", 2))]), "same node id");
}

#[test]
fn one_formed_replica_is_enough_to_never_form_again() {
    let known = formed(&[(1, "a"), (2, "b"), (3, "c")]);
    waits(&next(&greeting("a", 1), "here:1", vec![Ok(known), Ok(new("c", 3))]), "waiting for the leader");
    let lost = formed(&[(9, "a"), (2, "b"), (3, "c")]);
    waits(&next(&greeting("a", 1), "here:1", vec![Ok(lost), Err("c is away".into())]), "has been unreachable for 60 s");
    let mut of_two = formed(&[(9, "a"), (2, "b")]);
    waits(&next(&greeting("a", 1), "here:1", vec![Ok(of_two.clone())]), "run `allclear member restore` on its VM");
    of_two.refused = Some("more than one replica runs as a".into());
    waits(&next(&greeting("a", 1), "here:1", vec![Ok(of_two)]), "more than one");
    let mut foreign = formed(&[(2, "b"), (3, "c")]);
    foreign.greeting.replicas = vec!["b".into(), "c".into()];
    waits(&next(&greeting("a", 1), "here:1", vec![Ok(foreign), Ok(new("c", 3))]), "run `allclear member add a here:1`");
    let awaited = formed(&[(2, "b"), (3, "c")]);
    waits(&next(&greeting("a", 1), "here:1", vec![Ok(awaited), Ok(new("c", 3))]), "add this replica");
}

#[test]
fn those_who_are_to_vote_form_and_a_learner_is_waited_for_only_for_a_while() {
    let away = || vec![Ok(new("b", 2)), Err("c is away".into())];
    let form = Ok([(1, "a".into()), (2, "b".into())].into());
    let (own, founders, all) = (greeting("a", 1), ["a", "b"], ["a", "b", "c"]);
    assert_eq!(next_of(&own, "here:1", &founders, &all, vec![Ok(new("b", 2)), Ok(new("c", 3))]), form);
    waits(&next_of(&own, "here:1", &founders, &all, away()), "c is away");
    assert_eq!(next_of(&own, "here:1", &founders, &founders, away()), form);
    // A learner's knowledge counts regardless.
    let known = formed(&[(1, "a"), (2, "b"), (3, "c")]);
    waits(&next_of(&own, "here:1", &founders, &founders, vec![Err("b is away".into()), Ok(known)]), "the leader");
}
