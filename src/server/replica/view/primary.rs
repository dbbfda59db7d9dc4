//! Sentences about the primaries that an event takes down.

use allclear_wire::pb::allclear::operator::v1 as shown;

/// One sentence for each primary that is, or may be, on a VM of the event.
pub fn primaries(event: &shown::Event) -> Vec<String> {
    event.takes_down.iter().filter_map(primary).collect()
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
}
