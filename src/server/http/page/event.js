// One open event: its blocker, the next step with the time, the stages, and the commands.

import { chart } from "./chart.js";
import { commandsFor } from "./commands.js";
import { fill, outside, tree } from "./tree.js";
import { because, blockersOf, countdown, hookLabel, instant, isStuck, list, many, sentence, shortTimes, span, time, title, unprepared, word } from "./words.js";

const STAGES = ["announced", "preparing", "claimed", "approved", "started", "restoring", "closed"];
const SAID = {
  announced: "Announced", preparing: "Being prepared", claimed: "Approval assigned", approved: "Approved, not started yet",
  started: "Under way", restoring: "Over, being restored", closed: "Closed",
};
// A drill is never approved.
const REHEARSED = ["announced", "preparing", "restoring", "closed"];
// With more open events, the commands of each event are collapsed.
const FEW = 2;
const SOURCES = { User: "initiated by a user", Platform: "planned by Azure" };

export function drawEvents(section, status, now) {
  const { events } = status;
  fill(section,
    tree("h2", { id: "events-title" }, events.length ? `Open events (${events.length})` : "Open events"),
    events.length === 0 && tree("p", { "data-key": "none" }, "None. Events that Azure announces appear here automatically."),
    events.map((event, place) => card(event, place, status, now)));
}

function card(event, place, status, now) {
  const id = `event-${place}`;
  return tree("article", { "data-key": `event ${event.id}`, "aria-labelledby": id },
    tree("header", {},
      tree("h3", { id }, outside(title(event))),
      tree("p", { class: "badges" },
        tree("span", { class: "stage" }, said(event)), " ",
        event.drill ? `made up (${word(event.drill.mode)}), never approved` : SOURCES[event.source] ?? ["from ", outside(event.source)])),
    event.primaries.map((primary) => tree("p", { class: "primary", "data-key": primary }, tree("strong", {}, outside(sentence(shortTimes(primary, now)))))),
    why(event, status, now),
    stages(event, now),
    tree("h4", {}, "Hooks and points in time"),
    chart(event, now, now, event.id),
    event.drill && drill(event.drill, now),
    tree("details", { "data-key": "commands", open: status.events.length <= FEW },
      tree("summary", {}, "What you can do: commands to copy"), commandsFor(event, status, now)),
    facts(event, now),
    log(event, now));
}

const isEarly = (event) => blockersOf(event).some(({ code }) => code === "too_early");
const said = (event) => (isEarly(event) ? "Waits for the start of its preparation" : SAID[event.stage] ?? word(event.stage));

function why(event, status, now) {
  const { blocker } = event;
  const isOpen = ["announced", "preparing"].includes(event.stage) || (event.stage === "claimed" && blocker?.code !== "posting");
  const heading = isOpen ? (event.drill ? "What the drill waits for" : "Why the event is not approved yet") : blocker ? "What the event waits for" : "What happens now";
  const lack = unprepared(event, now);
  return tree("div", { class: `why ${lack || isStuck(event) ? "is-bad" : "is-wait"}` },
    tree("h4", {}, heading),
    lack && tree("p", { class: "because" }, outside(lack)),
    tree("p", { class: "because" }, outside(blocker ? because(blocker, status.events, now) : itself(event, status))),
    tree("dl", {},
      blocker && next(blocker, now),
      latest(event, now),
      blocker && row("Who can resolve it", outside(who(blocker.resolved_by))),
      event.other_blockers.map((other) => row("It also waits", outside(because(other, status.events, now)), " Who can resolve it: ", outside(who(other.resolved_by))))));
}

const who = (by) => (by.startsWith("allclear ") ? `An operator, with ${by}.` : sentence(by));

function itself(event, status) {
  if (event.stage === "started") {
    const long = event.duration_s >= 0 ? ` The expected duration is ${span(event.duration_s * 1000)}.` : " Azure gives no expected duration.";
    return `Azure is working on ${list(event.resources)}.${long}`;
  }
  if (event.stage === "restoring" && !status.quorum) return "The event is over; the restore of the workloads waits for a quorum.";
  if (event.stage === "restoring") return "The event is over; the prepared workloads are being restored.";
  return isNaN(instant(event.not_before)) ? "No details are known." : "There is no blocker.";
}

function row(term, ...text) {
  return tree("div", {}, tree("dt", {}, term), tree("dd", {}, text));
}

// The next step of the event. The time belongs to the last part of the sentence.
function next({ next: what, until }, now) {
  const said = sentence(shortTimes(what, now));
  const at = instant(until);
  if (isNaN(at)) return row("What happens next", outside(said));
  const when = `${at > now ? countdown(at, now) : "at any moment"} (${time(at, now)} UTC)`;
  return row("What happens next", outside(said.replace(/\.$/, "")), ": ", tree("time", { class: "count", datetime: until }, when), ".");
}

// The end of the notice, from which Azure may start the event without an approval.
function latest(event, now) {
  if (event.stage === "started" || event.stage === "restoring" || event.drill) return null;
  const at = instant(event.not_before);
  if (isNaN(at)) return row("Notice", outside(noNoticeEnd(event, now)), "; Azure may start the event when the usual notice of the event type has ended.");
  // The row above shows the same time.
  if (at > now && Math.abs(at - instant(event.blocker?.until)) < 1000) return null;
  const when = tree("time", { class: "count", datetime: event.not_before }, `${countdown(at, now)} (${time(at, now)} UTC)`);
  return row("Notice", at > now
    ? ["Ends ", when, ". From then on Azure may start the event, approved or not."]
    : ["Ended ", when, "; Azure may start the event at any moment."]);
}

// Why the end of the notice is unknown.
function noNoticeEnd({ stage, ignored_not_before: ignored }, now) {
  if (["started", "restoring", "closed"].includes(stage)) return "unknown";
  return ignored ? `Unknown: Azure said ${time(instant(ignored), now)} UTC, which was over when the event was first seen. Compare the clocks`
    : "Unknown: Azure gave no time, or nothing confirms the cluster's time";
}

function stages(event, now) {
  const entered = new Map(event.timeline.filter((step) => STAGES.includes(step.what)).map((step) => [step.what, instant(step.at)]));
  const ahead = event.drill ? REHEARSED : STAGES;
  const current = ahead.indexOf(event.stage);
  const steps = ahead.map((stage, place) => {
    const at = entered.get(stage);
    const kind = place === current ? "current" : at !== undefined ? "past" : place < current ? "skipped" : "future";
    return tree("li", { class: `is-${kind}`, "aria-current": kind === "current" && "step" },
      tree("span", { class: "mark", "aria-hidden": "true" }, { current: "● ", past: "✓ ", skipped: "– ", future: "○ " }[kind]),
      stage, tree("span", { class: "beside" }, at !== undefined ? time(at, now) : { skipped: "left out", future: "to come" }[kind] ?? ""));
  });
  return tree("ol", { class: "stages", "aria-label": "Stages" }, steps);
}

function facts(event, now) {
  const duration = event.duration_s >= 0 ? span(event.duration_s * 1000) : "not given by Azure";
  const treatment = event.treatment && `${event.treatment}${event.rule ? ` (rule: ${event.rule})` : ""}`;
  return tree("dl", { class: "facts" },
    row("Machines", outside(list(event.resources))),
    event.takes_down.length > 0 && row("Takes down", outside(list(event.takes_down.map(({ workload, vm, role }) => `${workload} on ${vm} (${role})`)))),
    row("Description by Azure", event.description ? outside(event.description) : "none"),
    row("Expected impact", duration),
    !event.drill && row("Notice ends", event.not_before ? `${time(instant(event.not_before), now)} UTC` : noNoticeEnd(event, now)),
    row("Treatment", treatment ? outside(treatment) : "not chosen yet"),
    event.hold && row("Held", `until ${time(instant(event.hold.until), now)} UTC by `, outside(`${event.hold.by}: ${event.hold.reason}`)),
    event.approvals.length > 0 && row("Approvals", event.approvals.map(({ approver, reason, outcome, detail }, place, all) => {
      const isOld = place + 1 < all.length || all.some((one) => one.outcome === "accepted");
      const soFar = isOld ? "no outcome yet" : "in progress";
      return tree("span", { class: "line" }, outside(`${approver} (${word(reason)}): ${word(outcome ?? soFar)}${detail ? `, ${shortTimes(detail, now)}` : ""}`));
    })),
    !event.drill && row("Seen by", outside(list(event.seen_by) || "no replica")),
    row("Event id", tree("code", {}, outside(event.id))));
}

function drill({ who: by, steps }, now) {
  return [
    tree("h4", {}, "Steps of the drill, started by ", outside(by)),
    tree("ul", { class: "plain" }, steps.map((step) => tree("li", {}, tree("strong", {}, hookLabel(step)), " of ",
      outside(`${step.workload} on ${step.vm}`), ": ", word(step.result), step.reason && [": ", outside(shortTimes(step.reason, now))]))),
  ];
}

export function log(event, now) {
  return tree("details", { "data-key": "log" },
    tree("summary", {}, `Timeline (${many(event.timeline.length, "entry", "entries")})`),
    tree("ol", { class: "log" }, event.timeline.map((step) => tree("li", {},
      tree("time", { datetime: step.at }, time(instant(step.at), now)), " ", outside(shortTimes(whole(step), now))))));
}

// The entry, with the actor and the reason if the entry's text lacks either.
function whole({ what, who, why }) {
  const more = [who, why].filter((word) => word && !what.includes(word));
  return [what, ...more.map((word) => `(${word})`)].join(" ");
}
