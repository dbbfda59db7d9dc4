//! `allclear member list`, for people.

use super::page::{TextBuilder, faint, green, plain, red};
use super::text::OutputContext;
use allclear_wire::pb::allclear::operator::v1 as shown;

pub(in crate::cli) fn members(reader: &OutputContext, list: &shown::MemberList) -> String {
    let mut page = TextBuilder::new(reader.paper);
    if list.members.is_empty() {
        page.line(0, &[plain("no members: the cluster is not formed yet, or no member answers")]);
        return page.into_text();
    }
    let mut rows = vec![["NAME", "ADDRESS", "VOTE", "LEADS", "NODE", "ANSWERS"].map(faint).to_vec()];
    for member in &list.members {
        let reachable = match &member.unreachable_because {
            Some(why) => red(why),
            None => green("reachable"),
        };
        rows.push(vec![
            plain(&member.name),
            plain(&member.address),
            plain(if member.voter { "voter" } else { "learner" }),
            plain(if member.leader { "leads" } else { "" }),
            plain(format!("node {}", member.node)),
            reachable,
        ]);
    }
    page.table(0, &rows);
    page.into_text()
}
