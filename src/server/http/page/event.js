// One open event: why it is not approved yet, what happens next and when, how far it is, and what can be done.

import { chart } from "./chart.js";
import { commandsFor } from "./commands.js";
import { fill, outside, tree } from "./tree.js";
import { NOBODY, because, countdown, instant, isStuck, list, many, sentence, shortTimes, span, time, title, word } from "./words.js";

const STAGES = ["announced", "preparing", "claimed", "approved", "started", "restoring", "closed"];
const SAID = {
  announced: "Announced", preparing: "Being prepared", claimed: "Approval assigned", approved: "Approved, not started yet",
  started: "Under way", restoring: "Over, being restored", closed: "Closed",
};
// A drill is never approved.
const REHEARSED = ["announced", "preparing", "restoring", "closed"];
// More than these would hide each other behind their commands.
const FEW = 2;
const SOURCES = { User: "asked for by a user of the cloud", Platform: "planned by the platform" };

export function drawEvents(section, status, now) {
  const { events } = status;
  fill(section,
    tree("h2", { id: "events-title" }, events.length ? `Open events (${events.length})` : "Open events"),
    events.length === 0 && tree("p", { "data-key": "none" }, "None. What the platform announces appears here by itself."),
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
    why(event, status, now),
    stages(event, now),
    tree("h4", {}, "Hooks and moments"),
    chart(event, now, now, event.id),
    event.drill && drill(event.drill),
    tree("details", { "data-key": "commands", open: status.events.length <= FEW },
      tree("summary", {}, "What you can do: commands to copy"), commandsFor(event, status, now)),
    facts(event, now),
    log(event, now));
}

const said = ({ stage, blocker }) => (blocker?.code === "too_early" ? "Waits for its time" : SAID[stage] ?? word(stage));

function why(event, status, now) {
  const { blocker } = event;
  const isOpen = ["announced", "preparing"].includes(event.stage) || (event.stage === "claimed" && blocker?.code !== "posting");
  const heading = isOpen ? (event.drill ? "What it waits for" : "Why it is not approved yet") : blocker ? "What it waits for" : "What happens now";
  return tree("div", { class: `why ${isStuck(event) ? "is-bad" : "is-wait"}` },
    tree("h4", {}, heading),
    tree("p", { class: "because" }, outside(blocker ? because(blocker, status.events, now) : itself(event))),
    tree("dl", {},
      blocker && next(blocker, now),
      latest(event, now),
      blocker && row("Who can resolve it", outside(who(blocker.resolved_by)))));
}

const who = (by) => (by.startsWith("allclear ") ? `An operator, with ${by}.` : by === NOBODY ? "Nobody needs to." : sentence(by));

function itself(event) {
  if (event.stage === "started") {
    const long = event.duration_s >= 0 ? ` It expects to take ${span(event.duration_s * 1000)}.` : " It does not say how long that takes.";
    return `The platform is at work on ${list(event.resources)}.${long}`;
  }
  if (event.stage === "restoring") return "It is over; what was prepared is put back.";
  return isNaN(instant(event.not_before)) ? "Nothing." : "Nothing stands against it.";
}

function row(term, ...text) {
  return tree("div", {}, tree("dt", {}, term), tree("dd", {}, text));
}

// What comes last in it is to happen then.
function next({ next: what, until }, now) {
  const said = sentence(shortTimes(what, now));
  const at = instant(until);
  if (isNaN(at)) return row("What happens next", outside(said));
  const when = `${at > now ? countdown(at, now) : "any moment now"} (${time(at, now)} UTC)`;
  return row("What happens next", outside(said.replace(/\.$/, "")), ": ", tree("time", { class: "count", datetime: until }, when), ".");
}

// What nobody can hold.
function latest(event, now) {
  if (event.stage === "started" || event.stage === "restoring" || event.drill) return null;
  const at = instant(event.not_before);
  if (isNaN(at)) return row("Its notice", "The platform gave no time that can be read; it may start when the usual notice of the type is over.");
  // told above
  if (at > now && Math.abs(at - instant(event.blocker?.until)) < 1000) return null;
  const when = tree("time", { class: "count", datetime: event.not_before }, `${countdown(at, now)} (${time(at, now)} UTC)`);
  return row("Its notice", at > now
    ? ["Ends ", when, ". From then on the platform may start it by itself, approved or not."]
    : ["Ended ", when, "; the platform may start it at any moment."]);
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
  const duration = event.duration_s >= 0 ? span(event.duration_s * 1000) : "the platform does not say";
  const treatment = event.treatment && `${event.treatment}${event.rule ? ` (rule: ${event.rule})` : ""}`;
  return tree("dl", { class: "facts" },
    row("Machines", outside(list(event.resources))),
    row("The platform says", event.description ? outside(event.description) : "nothing more"),
    row("Expected impact", duration),
    !event.drill && row("Notice ends", event.not_before ? `${time(instant(event.not_before), now)} UTC` : "unknown"),
    row("Treatment", treatment ? outside(treatment) : "not chosen yet"),
    event.hold && row("Held", `until ${time(instant(event.hold.until), now)} UTC by `, outside(`${event.hold.by}: ${event.hold.reason}`)),
    event.approvals.length > 0 && row("Approvals", event.approvals.map(({ approver, reason, outcome, detail }, place, all) => {
      const isOld = place + 1 < all.length || all.some((one) => one.outcome === "accepted");
      const soFar = isOld ? "no answer so far" : "under way";
      return tree("span", { class: "line" }, outside(`${approver} (${word(reason)}): ${word(outcome ?? soFar)}${detail ? `, ${detail}` : ""}`));
    })),
    !event.drill && row("Seen by", outside(list(event.seen_by) || "nobody")),
    row("Event id", tree("code", {}, outside(event.id))));
}

function drill({ who: by, steps }) {
  return [
    tree("h4", {}, "Steps of the drill, asked for by ", outside(by)),
    tree("ul", { class: "plain" }, steps.map((step) => tree("li", {}, tree("strong", {}, step.phase), " of ",
      outside(`${step.workload} on ${step.vm}`), ": ", word(step.result), step.reason && [": ", outside(step.reason)]))),
  ];
}

export function log(event, now) {
  return tree("details", { "data-key": "log" },
    tree("summary", {}, `Everything that happened (${many(event.timeline.length, "entry", "entries")})`),
    tree("ol", { class: "log" }, event.timeline.map((step) => tree("li", {},
      tree("time", { datetime: step.at }, time(instant(step.at), now)), " ", outside(shortTimes(whole(step), now))))));
}

// Who and why are told where the entry itself does not.
function whole({ what, who, why }) {
  const more = [who, why].filter((word) => word && !what.includes(word));
  return [what, ...more.map((word) => `(${word})`)].join(" ");
}
