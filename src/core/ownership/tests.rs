//! A session that takes the name of a configured workload takes no member out of a group.

use super::*;
use crate::model::workload::OnAbsent;
use alloc::string::String;

fn dialled(name: &str, group: Option<&str>) -> Workload {
    Workload {
        name: WorkloadName(name.into()),
        group: group.map(|name| GroupName(name.into())),
        after: Vec::new(),
        hooks: Vec::new(),
        origin: Origin::Session { owner: 0 },
        on_absent: OnAbsent::Hold,
    }
}

#[test]
fn who_replaces_a_configured_member_stays_in_its_group() {
    let orders = GroupName(String::from("orders"));
    let pg = WorkloadName("pg".into());
    let groups_of = [(pg.clone(), orders.clone())].into();
    let grants = Grants { trusted: [0].into(), groups_of, ..Grants::default() };
    let registers =
        |name: &str, group| State::default().may_register(&VmName::new("db-0"), &dialled(name, group), &grants);
    assert_eq!(registers("pg", Some("orders")), Ok(()));
    let leaves = Err(OwnershipError::LeavesGroup { name: pg, group: orders });
    assert_eq!(registers("pg", Some("other")), leaves);
    assert_eq!(registers("pg", None), leaves);
    assert_eq!(registers("cache", None), Ok(()));
}
