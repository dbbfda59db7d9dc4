//! The offered commands on a replica without a quorum.

use super::*;

#[test]
fn an_approval_without_a_quorum_says_that_the_primary_goes_down() {
    let other_voters = vec!["db-1".into()];
    let alone = Some(shown::IsolatedApproval { other_voters, ..Default::default() });
    let blocker = shown::Blocker { code: "no_quorum".into(), isolated_approval: alone, ..Default::default() };
    let offered = told(blocker.clone(), |_| {});
    let by_hand = "db-0 holds the primary of orders-db: if no quorum comes back in time, move the primary by hand. Once no \
                   hook of the event runs, first stop allclear on that VM";
    let stop = offered.find(by_hand).filter(|_| offered.contains("\nsystemctl stop allclear\n"));
    assert!(stop.is_some_and(|at| at < offered.find("approve e --alone").unwrap()), "{offered}");
    assert!(!told(blocker, |event| event.takes_down.clear()).contains("systemctl"), "no primary is on the VM");
    let risk = "knows: none; db-0 holds the primary of orders-db, which is NOT moved and goes down";
    assert!(offered.contains(risk), "{offered}");
}

#[test]
fn of_three_voters_the_others_are_to_be_asked_first() {
    let offered = |others_may_have_quorum| {
        let other_voters = vec!["db-1".into(), "db-2".into()];
        let alone = shown::IsolatedApproval { other_voters, others_may_have_quorum, ..Default::default() };
        let isolated_approval = Some(alone);
        let blocker = shown::Blocker { code: "no_quorum".into(), isolated_approval, ..Default::default() };
        told(blocker, |event| event.revision = 7)
    };
    let cut_off = offered(true);
    let asks = "first ask the other replicas, on the VMs of db-1, db-2: they may have a quorum, and hold or approve the \
                event there\nallclear status\n";
    assert!(cut_off.starts_with(asks), "{cut_off}");
    assert!(
        cut_off.contains("knows: the other voters may have a quorum, and decide otherwise; db-0 holds"),
        "{cut_off}"
    );
    assert!(cut_off.contains("\nallclear approve e --alone --reason 'WHY'\n"), "not ready to be copied: {cut_off}");
    let pair = offered(false);
    assert!(pair.contains("\nallclear approve e --alone --revision 7 --reason 'WHY'\n"), "{pair}");
    assert!(pair.contains("knows: none; db-0 holds") && !pair.contains("have a quorum"), "{pair}");
}
