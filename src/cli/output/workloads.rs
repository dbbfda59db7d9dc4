//! `allclear workload list`, for people.

use super::page::{TextBuilder, faint, green, plain, red};
use super::text::OutputContext;
use allclear_wire::pb::allclear::operator::v1 as shown;

pub(in crate::cli) fn workloads(reader: &OutputContext, members: &[shown::MemberState]) -> String {
    let mut page = TextBuilder::new(reader.paper);
    if members.is_empty() {
        page.line(0, &[plain("no workloads are registered")]);
        return page.into_text();
    }
    let mut rows = vec![["WORKLOAD", "GROUP", "STATE", "SINCE", "ASKED", "BY", "OWED"].map(faint).to_vec()];
    for member in members {
        let state = if member.state == "in_service" { green(&member.state) } else { red(&member.state) };
        let asked = if member.asked { "yes" } else { "no replica asks" };
        let text = |field: &Option<String>| plain(field.as_deref().unwrap_or_default());
        let name = plain(format!("{}/{}", member.vm, member.workload));
        let (since, by, owed) = (text(&member.since), text(&member.by), text(&member.owed));
        rows.push(vec![name, text(&member.group), state, since, plain(asked), by, owed]);
    }
    page.table(0, &rows);
    page.into_text()
}
