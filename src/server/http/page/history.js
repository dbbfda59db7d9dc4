// Closed events, newest first.

import { chart } from "./chart.js";
import { log } from "./event.js";
import { fill, outside, tree } from "./tree.js";
import { instant, took, time, title, word } from "./words.js";

// `closed` is null if the history could not be read.
export function drawHistory(section, closed, now) {
  fill(section,
    tree("h2", { id: "history-title" }, "History"),
    closed === null && tree("p", {}, "The history could not be read."),
    closed?.length === 0 && tree("p", {}, "No event has been closed yet."),
    tree("ul", { class: "history" }, (closed ?? []).map((event) => tree("li", { "data-key": event.id }, story(event, now)))));
}

const ENDINGS = { completed: "✓", cancelled: "–", drilled: "✓" };
const CAUSES = {
  notice_expired: "the notice ended before an approval", approved_elsewhere: "another approver approved the event",
  platform: "it had started when it was first seen",
};

// An event that the cluster was to prepare, and that started without its approval, is no success.
const isUnapproved = ({ outcome, treatment, start_cause: cause }) => outcome === "completed" && treatment === "prepare" && cause in CAUSES;

function story(event, now) {
  // A pause or a resume may be older than the event.
  const began = instant(event.timeline.find(({ what }) => what === "announced")?.at ?? event.timeline[0]?.at);
  const ended = instant(event.timeline.at(-1)?.at);
  const posted = event.approvals.filter((approval) => approval.outcome === "accepted");
  const by = posted.length
    ? ["all-clear by ", outside(posted.map(({ approver, reason }) => `${approver} (${word(reason)})`).join(", "))]
    : event.drill ? `made up (${word(event.drill.mode)}), never approved` : "no all-clear by allclear";
  const isUnseen = event.outcome === "completed" && !event.start_seen;
  const cause = isUnseen ? "no start was seen, " : event.start_cause && `started because: ${CAUSES[event.start_cause] ?? word(event.start_cause)}, `;
  const mark = isUnapproved(event) ? "!" : ENDINGS[event.outcome] ?? "✕";
  return tree("details", {},
    tree("summary", {},
      tree("time", { datetime: event.timeline.at(-1)?.at }, `${time(ended, now)} UTC`), " ",
      tree("strong", {}, outside(title(event))), " ",
      tree("span", { class: "ending" }, tree("span", { class: "mark", "aria-hidden": "true" }, `${mark} `), word(event.outcome)),
      tree("span", { class: "beside" }, cause, by, `, closed ${took(ended - began)} after it was announced`)),
    chart(event, ended, ended, `history ${event.id}`),
    log(event, now));
}
