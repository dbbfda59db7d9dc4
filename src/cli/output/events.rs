//! `allclear events`, for people: open events first, then the most recent closed events.

use super::moments;
use super::page::{TextBuilder, faint, plain};
use super::text::{OutputContext, how_far};
use allclear_server::replica::clock::from_rfc3339;
use allclear_server::replica::view::advice::blockers;
use allclear_wire::pb::allclear::operator::v1 as shown;

pub(in crate::cli) fn events(reader: &OutputContext, list: &shown::EventList) -> String {
    let mut page = TextBuilder::new(reader.paper);
    if list.events.is_empty() {
        page.line(0, &[plain("no events")]);
        return page.into_text();
    }
    let (open, closed): (Vec<_>, Vec<_>) = list.events.iter().rev().partition(|event| event.stage != "closed");
    let mut rows = vec![["SEEN", "EVENT", "TYPE", "BY", "VMS", "STATE"].map(faint).to_vec()];
    for event in open.into_iter().chain(closed) {
        let seen = event.timeline.first().and_then(|step| from_rfc3339(&step.at));
        let drill = if event.drill.is_some() { "DRILL, " } else { "" };
        rows.push(vec![
            plain(seen.map_or("-".into(), |at| moments::relative(reader.now, at))),
            plain(&event.id),
            plain(&event.r#type),
            plain(&event.source),
            plain(event.resources.join(" ")),
            plain(format!("{drill}{}", state(event))),
        ]);
    }
    page.table(0, &rows);
    page.into_text()
}

/// The event's blockers, which are more precise than the stage, or else the stage.
fn state(event: &shown::Event) -> String {
    match &event.blocker {
        Some(blocker) if blocker.code == "waiting_for_platform" => "approved, not started yet".into(),
        Some(_) => {
            let codes: Vec<&str> = blockers(event).map(|blocker| blocker.code.as_str()).collect();
            format!("waits: {}", codes.join(", "))
        }
        None => how_far(event),
    }
}
