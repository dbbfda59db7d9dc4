//! What is stored stays readable: the bytes of every stored message, as the first version wrote them.

use prost::Message;

use super::*;

fn id(term: u64, index: u64) -> LogId {
    LogId::new(CommittedLeaderIdOf::<Types>::from(term), index)
}

fn members() -> Membership {
    let member = |name: &str| RaftMember { replica: name.into(), address: format!("{name}:7420"), lineage: 0 };
    Membership::new(
        vec![[1, 2].into(), [1, 3].into()],
        BTreeMap::from([(1, member("db-0")), (2, member("db-1")), (3, member("db-2")), (4, member("db-3"))]),
    )
    .unwrap()
}

fn golden<M: Message + Default + PartialEq + std::fmt::Debug>(message: &M, expected: &str) {
    let digits = expected.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    let expected: Vec<u8> = digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
    assert_eq!(message.encode_to_vec(), expected);
    assert_eq!(&M::decode(expected.as_slice()).unwrap(), message);
}

#[test]
fn the_identity_keeps_its_bytes() {
    let identity = pb::Identity { format: 1, cluster: "orders".into(), replica: "db-0".into(), node: 0x0102_0304 };
    golden(&identity, "080112066f72646572731a0464622d30210403020100000000");
}

#[test]
fn positions_and_votes_keep_their_bytes() {
    golden(&pb_log_id(&id(3, 300)), "080310ac02");
    let vote = RaftVote { leader_id: LeaderIdOf::<Types>::new(3, 0x0102_0304), committed: true };
    golden(&pb_vote(&vote), "08031104030201000000001801");
    assert_eq!(super::vote(Some(pb_vote(&vote))).unwrap(), vote);
    assert_eq!(log_id(pb_log_id(&id(3, 300))), id(3, 300));
}

#[test]
fn entries_keep_their_bytes() {
    let blank = RaftEntry::new(id(1, 1), EntryPayload::Blank);
    let proposed = RaftEntry::new(id(3, 300), EntryPayload::Normal(Proposed("some bytes".into())));
    let membership = RaftEntry::new(id(0, 0), EntryPayload::Membership(members()));
    golden(&pb_entry(&blank), "0a04080110011200");
    golden(&pb_entry(&proposed), "0a05080310ac021a0a736f6d65206279746573");
    golden(
        &pb_entry(&membership),
        "\
         0a002298010a120a10010000000000000002000000000000000a120a1001000000000000000300000000000000121a09\
         0100000000000000120464622d301a0964622d303a37343230121a090200000000000000120464622d311a0964622d31\
         3a37343230121a090300000000000000120464622d321a0964622d323a37343230121a09040000000000000012046462\
         2d331a0964622d333a37343230",
    );
    for entry in [blank, proposed, membership] {
        assert_eq!(super::entry(pb_entry(&entry)).unwrap(), entry);
    }
}

#[test]
fn a_lineage_keeps_its_bytes() {
    let member = RaftMember { replica: "db-0".into(), address: "db-0:7420".into(), lineage: 0x0102_0304 };
    let restored = Membership::new(vec![[1].into()], BTreeMap::from([(1, member)])).unwrap();
    golden(
        &pb_membership(&restored),
        "0a0a0a0801000000000000001224090100000000000000120464622d301a0964622d303a37343230c1020403020100000000",
    );
    assert_eq!(membership(pb_membership(&restored)).unwrap(), restored);
}

#[test]
fn snapshots_keep_their_bytes() {
    let last_membership = StoredMembership::new(Some(id(0, 0)), members());
    let meta = SnapshotMeta { last_log_id: Some(id(3, 300)), last_membership };
    let snapshot = pb::Snapshot { head: Some(pb_snapshot_head(&meta)), state: "state".into() };
    golden(
        &snapshot,
        "\
         0aa4010a05080310ac0212001a98010a120a10010000000000000002000000000000000a120a10010000000000000003\
         00000000000000121a090100000000000000120464622d301a0964622d303a37343230121a0902000000000000001204\
         64622d311a0964622d313a37343230121a090300000000000000120464622d321a0964622d323a37343230121a090400\
         000000000000120464622d331a0964622d333a3734323012057374617465",
    );
    assert_eq!(snapshot_meta(pb_snapshot_head(&meta)).unwrap(), meta);
    let empty = SnapshotMeta { last_log_id: None, last_membership: StoredMembership::default() };
    assert_eq!(snapshot_meta(pb_snapshot_head(&empty)).unwrap(), empty);
}

#[test]
fn messages_without_their_parts_are_refused() {
    assert!(super::vote(None).is_err());
    assert!(super::entry(pb::Entry::default()).is_err());
    assert!(super::entry(pb::Entry { id: Some(pb::LogId::default()), payload: None }).is_err());
    let voter_without_member = pb::Membership { voters: vec![pb::Voters { nodes: vec![1] }], members: Vec::new() };
    assert!(super::membership(voter_without_member).is_err());
}
