// The chart of an event: hooks as bars over one time axis, and the event's stages as marks.

import { outside, tree } from "./tree.js";
import { hookLabel, instant, list, shortTimes, span, time, took } from "./words.js";

const SIGNS = { done: "✓", not_applicable: "–", failed: "✕", blocked: "‖", unknown: "?", unreachable: "✕", timed_out: "✕" };
const OUTCOMES = { not_applicable: "nothing to do", unknown: "outcome unknown", blocked: "blocked", timed_out: "timed out" };

// For a closed event, `now` is the end of the time axis.
export function chart(event, now, today, key) {
  const scale = scaleOf(event, now);
  const marks = marksOf(event, now, scale);
  const rows = event.hooks.map((hook) => bar(hook, scale, now, marks, today));
  return tree("div", { class: "chart", "data-key": `chart ${key}` },
    axis(marks, today),
    rows.length > 0 ? tree("ol", { class: "hooks" }, rows) : tree("p", { class: "aside" }, "No hook has started."),
    event.hooks_to_come.length > 0 && tree("p", { class: "aside" }, "To come: ", outside(list(event.hooks_to_come)), "."),
    beyond(event, scale, today));
}

function scaleOf(event, now) {
  const from = instant(event.timeline[0]?.at) || now;
  const ends = [now, ...event.hooks.map((hook) => (hook.ended_at ? instant(hook.ended_at) : Math.max(instant(hook.deadline), now)))];
  let to = Math.max(from + 2000, ...ends);
  const notBefore = instant(event.not_before);
  // The axis reaches to NotBefore only while the bars stay readable.
  const isNear = notBefore > from && notBefore - from < 5 * (to - from);
  if (isNear && !event.outcome) to = Math.max(to, notBefore);
  return { from, to: to + (to - from) / 50, at(when) { return Math.min(100, Math.max(0, (100 * (when - this.from)) / (this.to - this.from))); } };
}

function marksOf(event, now, scale) {
  const first = (...words) => instant(event.timeline.find((step) => words.includes(step.what))?.at);
  const accepted = instant(event.approvals.find((approval) => approval.outcome === "accepted")?.at);
  const notBefore = instant(event.not_before);
  const marks = [
    { at: first("announced"), text: "announced", kind: "past" },
    { at: accepted, text: "all-clear", kind: "past" },
    { at: first("started"), text: "started", kind: "past" },
    { at: first("restoring"), text: "over", kind: "past" },
    { at: first("closed"), text: "closed", kind: "past" },
    !event.outcome && { at: now, text: "now", kind: "now" },
    !event.outcome && !(first("started") >= 0) && { at: notBefore, text: "notice ends", kind: "limit" },
  ];
  return marks.filter((mark) => mark && mark.at >= scale.from && mark.at <= scale.to).map((mark) => ({ ...mark, left: scale.at(mark.at) })).sort((a, b) => a.at - b.at);
}

// Overlapping labels are placed in separate lanes.
function axis(marks, today) {
  const width = Math.min(document.documentElement.clientWidth - 48, 900);
  const taken = [];
  const labels = marks.map((mark) => {
    const text = `${mark.text} ${time(mark.at, today)}`;
    const size = (100 * (text.length * 7.6 + 14)) / width;
    // At the right edge the label is placed to the left of the mark.
    const isTurned = mark.left + size > 100 && mark.left > size;
    const start = isTurned ? mark.left - size : mark.left;
    let lane = taken.findIndex((end) => end <= start);
    if (lane < 0) lane = taken.length;
    taken[lane] = start + size;
    const kind = `moment is-${mark.kind} lane-${Math.min(lane, 5)}`;
    return isTurned
      ? tree("li", { class: `${kind} is-turned`, right: 100 - mark.left }, text)
      : tree("li", { class: kind, left: mark.left }, text);
  });
  return tree("ul", { class: `axis lanes-${Math.min(taken.length, 6)}`, "aria-label": "Points in time" }, labels);
}

function bar(hook, scale, now, marks, today) {
  const from = instant(hook.started_at);
  const to = hook.ended_at ? instant(hook.ended_at) : now;
  const deadline = instant(hook.deadline);
  const kind = hook.outcome ?? "running";
  const width = (a, b) => Math.max(0, scale.at(b) - scale.at(a));
  const intent = { confirm: "confirmation of ", undo: "undo of " }[hook.intent] ?? "";
  const elsewhere = hook.on !== hook.vm && [", run by ", outside(hook.on)];
  return tree("li", { "data-key": hook.attempt },
    tree("div", { class: "hook" },
      tree("span", { class: "name" }, tree("span", { class: "mark", "aria-hidden": "true" }, `${SIGNS[kind] ?? (hook.outcome ? "✕" : "▶")} `),
        intent, tree("strong", {}, hookLabel(hook)), " of ", outside(hook.workload), " on ", outside(hook.vm), elsewhere),
      tree("span", { class: `how is-${kind}` }, hook.outcome
        ? [`${OUTCOMES[kind] ?? kind} after ${took(to - from)}`, (hook.reason || hook.progress) && [": ", outside(shortTimes(hook.reason || hook.progress, today))]]
        : [`has been running for ${span(now - from)}, `, now < deadline ? `stopped in ${span(deadline - now)} at the latest` : "the deadline has passed",
          hook.progress && [": ", outside(shortTimes(hook.progress, today))]])),
    tree("div", { class: "track", "aria-hidden": "true" },
      marks.map((mark) => tree("i", { class: `tick is-${mark.kind}`, left: mark.left })),
      !hook.outcome && tree("i", { class: "allowance", left: scale.at(to), width: width(to, deadline) }),
      tree("i", { class: `bar is-${kind}`, left: scale.at(from), width: Math.max(0.6, width(from, to)) }),
      !hook.outcome && deadline <= scale.to && tree("i", { class: "deadline", left: scale.at(deadline) })));
}

function beyond(event, scale, today) {
  const notBefore = instant(event.not_before);
  const mayStart = ["announced", "preparing", "claimed", "approved"].includes(event.stage);
  if (!mayStart || !(notBefore > scale.to)) return null;
  return tree("p", { class: "aside" }, `Beyond the right edge: Azure may start the event at ${time(notBefore, today)} UTC.`);
}
