//! Sentences about the primaries that an event takes down.

use allclear_wire::pb::allclear::operator::v1 as shown;

/// A sentence for each primary on a VM of the event, also for a possible primary.
pub fn primaries(event: &shown::Event) -> Vec<String> {
    event.takes_down.iter().filter_map(primary).collect()
}

/// A sentence for each primary without a failover that is left to run. A drill takes nothing down.
pub fn unmoved_primaries(event: &shown::Event) -> Vec<String> {
    unmoved_without(event, "")
}

/// As `unmoved_primaries`, once this hook is skipped: WORKLOAD/PHASE or VM/WORKLOAD/PHASE.
pub fn unmoved_without(event: &shown::Event, hook: &str) -> Vec<String> {
    let mut parts = hook.rsplit('/');
    let phase = parts.next().unwrap_or_default().split('#').next();
    let (workload, vm) = (parts.next(), parts.next());
    let is_skipped = |down: &shown::TakenDown| {
        let is_of_vm = vm.is_none_or(|vm| vm.eq_ignore_ascii_case(&down.vm));
        phase == Some("failover") && workload == Some(down.workload.as_str()) && is_of_vm
    };
    let taken_down = event.takes_down.iter().filter(|_| event.drill.is_none());
    let unmoved = taken_down.filter(|down| !down.failover_left || is_skipped(down));
    unmoved.filter_map(primary).collect()
}

/// The fate of primaries on a VM of an event without a failover; `None` without such primaries.
pub fn going_down(primaries: &[String]) -> Option<String> {
    (!primaries.is_empty()).then(|| format!("{}, which is NOT moved and goes down", primaries.join(" and ")))
}

fn primary(down: &shown::TakenDown) -> Option<String> {
    let (vm, of) = (&down.vm, down.group.as_ref().unwrap_or(&down.workload));
    if down.role == "primary" {
        return Some(format!("{vm} holds the primary of {of}"));
    }
    if down.may_be_primary {
        return Some(format!(
            "{vm} may hold the primary of {of} (its role is not known, and no other member that answers has it)"
        ));
    }
    let last = down.last_role.as_ref().filter(|last| last.role == "primary")?;
    Some(match &last.unreachable_since {
        Some(since) => format!("{vm} held the primary of {of} before {since}, and does not tell its role since"),
        None => format!("{vm} or another member holds the primary of {of}: both say so"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_primary_is_told_with_what_is_known_of_it() {
        let down = |role: &str, last: Option<Option<&str>>| shown::TakenDown {
            workload: "pg".into(),
            vm: "db-0".into(),
            group: Some("orders-db".into()),
            role: role.into(),
            last_role: last
                .map(|since| shown::LastRole { role: "primary".into(), unreachable_since: since.map(Into::into) }),
            may_be_primary: false,
            failover_left: false,
        };
        let unknown = shown::TakenDown { may_be_primary: true, ..down("unknown", None) };
        let told = primary(&unknown).unwrap();
        assert!(told.starts_with("db-0 may hold the primary of orders-db (its role is not known"), "{told}");
        let told = |down| primaries(&shown::Event { takes_down: vec![down], ..Default::default() });
        assert_eq!(told(down("primary", None)), ["db-0 holds the primary of orders-db"]);
        assert_eq!(told(down("replica", None)), [""; 0]);
        let left = "db-0 held the primary of orders-db before 03:12, and does not tell its role since";
        assert_eq!(told(down("unknown", Some(Some("03:12")))), [left]);
        let both = "db-0 or another member holds the primary of orders-db: both say so";
        assert_eq!(told(down("unknown", Some(None))), [both]);
    }

    #[test]
    fn a_primary_is_unmoved_without_a_failover_that_is_left() {
        let down = |vm: &str, failover_left| shown::TakenDown {
            workload: "pg".into(),
            vm: vm.into(),
            role: "primary".into(),
            failover_left,
            ..Default::default()
        };
        let event = shown::Event { takes_down: vec![down("db-0", true), down("db-1", false)], ..Default::default() };
        let (first, second) = ("db-0 holds the primary of pg", "db-1 holds the primary of pg");
        assert_eq!(unmoved_primaries(&event), [second]);
        for hook in ["pg/failover", "db-0/pg/failover", "DB-0/pg/failover#move"] {
            assert_eq!(unmoved_without(&event, hook), [first, second], "{hook}");
        }
        for hook in ["db-1/pg/failover", "db-0/pg/drain", "db-0/failover/drain", "queue/failover"] {
            assert_eq!(unmoved_without(&event, hook), [second], "{hook}");
        }
        let drill = shown::Event { drill: Some(shown::Drill::default()), ..event.clone() };
        assert_eq!(unmoved_primaries(&drill), [""; 0]);
        assert_eq!(going_down(&[]), None);
        let both = going_down(&unmoved_without(&event, "pg/failover")).unwrap();
        assert_eq!(both, format!("{first} and {second}, which is NOT moved and goes down"));
    }
}
