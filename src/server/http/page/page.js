// The page as a whole. It is drawn again with each change of the status, and every second.

import { ability, drawCluster } from "./page/cluster.js";
import { commandLine } from "./page/commands.js";
import { drawEvents } from "./page/event.js";
import { closedEvents, listen } from "./page/feed.js";
import { drawHistory } from "./page/history.js";
import { fill, outside, plain, tree } from "./page/tree.js";
import { because, instant, isStuck, list, many, sentence, shortTimes, span, time, title, unprepared, word } from "./page/words.js";
import { drawWorkloads } from "./page/workloads.js";

const place = (id) => document.getElementById(id);
const MOST_LINES = 5;
const known = { status: null, closed: null, ahead: 0, lostAt: null, heardAt: Date.now() };
const now = () => Date.now() + known.ahead;

listen({
  tells(status) {
    const had = openIds(known.status);
    const wasLost = known.lostAt !== null;
    known.status = status;
    lives(status.now);
    if (known.closed === null || wasLost || had !== openIds(status)) readHistory();
    draw();
    drawWorkloads(place("workloads"), status);
  },
  lives,
  loses() {
    known.lostAt ??= Date.now();
    draw();
  },
});
setInterval(draw, 1000);
draw();

const openIds = (status) => (status?.events ?? []).map((event) => event.id).join("\n");

// The browser's clock may be wrong, so countdowns use the cluster time.
function lives(at) {
  known.ahead = instant(at) - Date.now();
  known.heardAt = Date.now();
  known.lostAt = null;
}

async function readHistory() {
  const closed = await closedEvents();
  if (closed === undefined) {
    if (known.closed === null) drawHistory(place("history"), null, now());
    return;
  }
  known.closed = closed;
  drawHistory(place("history"), closed, now());
}

function draw() {
  const { status } = known;
  const lost = known.lostAt !== null;
  drawHeader(status);
  drawFooter(status);
  // Old values look old: a page that stays green hides that it knows nothing.
  place("main").classList.toggle("is-old", lost);
  if (lost) {
    document.title = "✕ Not connected · allclear";
    speak("The connection to the replica is lost.");
  }
  if (!status) return;
  const found = lost ? unheard(status) : verdict(status);
  if (!lost) {
    document.title = `${found.mark} ${plain(found.title)} · allclear`;
    speak(`${plain(found.title)}. ${found.spoken ?? ""}`);
  }
  drawSummary(status, found, lost);
  drawEvents(place("events"), status, now());
  drawCluster(place("cluster"), status, now() - (known.heardAt + known.ahead));
}

// The verdict on a status that may be wrong by now.
function unheard(status) {
  const at = known.heardAt + known.ahead;
  return {
    level: "bad is-lost", mark: "✕", label: "Not connected",
    title: `Nothing was heard from ${status.replica} since ${time(at, now())} UTC`,
    text: ["The rest of this page is old, and may be wrong by now. Then it said: ", outside(sentence(verdict(status).title))],
  };
}

// Screen readers announce the text once, when the text changes.
function speak(text) {
  if (place("spoken").textContent !== text) place("spoken").textContent = text;
}

function drawHeader(status) {
  const lost = known.lostAt !== null;
  const connection = lost
    ? tree("p", { class: "connection is-lost" }, tree("span", { class: "mark", "aria-hidden": "true" }, "✕ "), "Not connected")
    : tree("p", { class: "connection" }, status ? ["Live, from ", outside(status.replica)] : "Connecting …");
  const old = lost && tree("p", { class: "notice is-bad", "data-key": "lost" },
    tree("strong", {}, "The connection to ", status ? outside(status.replica) : "the replica", " is lost. "),
    status
      ? `The shown status is old: its time is ${time(known.heardAt + known.ahead, now())} UTC, ${span(Date.now() - known.heardAt)} ago. `
      : "Nothing is known yet. ",
    "The page retries the connection every two seconds; the page of another replica may be up to date.");
  fill(place("header"),
    tree("div", { class: "bar-of-names" },
      tree("h1", {}, tree("span", { class: "product" }, "allclear"), " ", status ? outside(status.cluster) : ""),
      connection),
    old);
}

function verdict(status) {
  const bad = { level: "bad", mark: "✕", label: "Action needed" };
  const wait = { level: "wait", mark: "●", label: "Under way" };
  if (status.outside_because) {
    return { ...bad, title: `${status.replica} takes no part in its cluster`, text: sentence(shortTimes(status.outside_because, now())) };
  }
  if (!status.quorum) {
    const title = isCutOff(status) ? `${status.replica} is cut off: the cluster cannot act from here` : "No quorum: the cluster cannot act";
    return { ...bad, title, text: withoutQuorum(status) };
  }
  if (!status.replicas.some(({ member, reachable, metadata }) => member && reachable && metadata === "healthy")) {
    return { ...bad, title: "Nobody sees events: no metadata endpoint answers", text: blind(status) };
  }
  const faults = status.groups.flatMap(({ name, primary_fault: primary, over_limit: over }) =>
    [primary, over].filter(Boolean).map((fault) => `${name} ${fault}`));
  if (faults.length > 0) {
    return { ...bad, title: faults[0], text: outside(sentence(faults.join("; "))), spoken: plain(faults.join("; ")) };
  }
  if (status.paused) {
    return { ...wait, label: "Paused", title: "All approvals are paused", text: paused(status) };
  }
  const { events } = status;
  const unready = status.members.filter((member) => member.state === "not_ready").map((member) => `${member.workload} on ${member.vm}`);
  if (events.length === 0 && unready.length > 0) {
    return { ...bad, title: `No maintenance is announced, but ${list(unready)} ${unready.length === 1 ? "is" : "are"} not ready`, text: null };
  }
  if (events.length === 0 && ability(status, now()).worries.length > 0) {
    return { ...wait, mark: "!", label: "Check this", title: "No maintenance is announced, but there are warnings", text: null };
  }
  const out = status.members.filter((member) => member.state !== "in_service");
  if (events.length === 0 && out.length > 0) {
    return { ...bad, title: `No maintenance is announced, but ${many(out.length, "member")} ${out.length === 1 ? "is" : "are"} not in service`, text: null };
  }
  const owed = out.filter((member) => member.state === "returning" && member.owed.includes("failed"));
  if (owed.length > 0) {
    const lines = owed.map((member) => shortTimes(`${member.workload} on ${member.vm}: ${member.owed}`, now()));
    const text = tree("ul", { class: "meaning" }, lines.slice(0, MOST_LINES).map((line) => tree("li", {}, outside(line))));
    return { ...bad, title: `${many(owed.length, "member")} could not be restored`, text, spoken: lines.join(" ") };
  }
  if (events.length === 0) {
    return { level: "good", mark: "✓", label: "All is well", title: "No maintenance is announced", text: null };
  }
  const waiting = events.filter((event) => ["announced", "preparing", "claimed"].includes(event.stage) && !event.drill);
  const isGiven = events.every((event) => event.stage === "approved");
  const level = waiting.some(isStuck) || events.some((event) => unprepared(event, now())) ? bad : { ...wait, label: waiting.length ? "Waiting" : isGiven ? "Approved" : "Under way" };
  const lines = events.map((event) => `${title(event)} ${standing(event)}${event.blocker ? `: ${because(event.blocker, events, now())}` : "."}`);
  if (events.length === 1) {
    const why = events[0].blocker ? because(events[0].blocker, events, now()) : unprepared(events[0], now());
    return { ...level, title: `${title(events[0])} ${standing(events[0])}`, text: why && outside(why), spoken: why && plain(why) };
  }
  const state = waiting.length ? `${waiting.length} not approved yet` : "none waits for an approval";
  const text = tree("ul", { class: "meaning" }, lines.slice(0, MOST_LINES).map((line) => tree("li", {}, outside(line))));
  return { ...level, title: `${many(events.length, "event")} are open, ${state}`, text, spoken: plain(lines.slice(0, MOST_LINES).join(" ")) };
}

// Without a document nothing is announced, prepared or approved, and events start all the same.
function blind({ doctor }) {
  return ["No replica receives documents from Azure's metadata endpoint. New events are not seen, and nothing is approved; Azure starts each event when its notice ends. Run on each of the VMs: ",
    tree("code", {}, plain(doctor))];
}

function standing({ stage, blocker, drill, missing_hooks: missing }) {
  const soFar = drill ? "is under way" : "is not approved yet";
  const said = {
    announced: soFar, preparing: soFar, claimed: blocker?.code === "posting" ? "is being approved" : soFar,
    approved: "is approved, and has not started yet", started: missing.length ? "has started unprepared" : "is under way", restoring: "is over and being restored",
  };
  return said[stage] ?? `is ${word(stage)}`;
}

function paused(status) {
  const { by, until, reason } = status.paused;
  const at = instant(until);
  return ["Nothing is approved until ", `${time(at, now())} UTC (${span(at - now())} more), by request of `, outside(by),
    ": ", outside(reason), ". Azure starts each event when its notice ends, regardless of the pause. To end the pause: ",
    tree("code", {}, commandLine("allclear resume --reason 'WHY'", status))];
}

// The other voters of three or more may have a quorum; of a pair nobody has one without the other.
const isCutOff = ({ replicas }) => replicas.filter((replica) => replica.voter).length > 2;

function withoutQuorum(status) {
  const voters = status.replicas.filter((replica) => replica.voter);
  const reached = voters.filter((replica) => replica.reachable || replica.name === status.replica);
  const lost = voters.filter((replica) => !reached.includes(replica)).map((replica) => replica.name);
  const needed = Math.floor(voters.length / 2) + 1;
  const leads = status.leader && status.leader !== status.replica;
  const points = [
    leads && [outside(status.leader), ` leads, and too few of ${many(voters.length, "voter")} answer the leader; ${needed} are needed, the leader included.`],
    !leads && reached.length >= needed && `There is no leader at this moment, although ${reached.length} of ${many(voters.length, "voter")} answer; an election takes a second or two.`,
    !leads && reached.length < needed && [outside(status.replica), ` reaches ${reached.length} of ${many(voters.length, "voter")}, itself included; ${needed} are needed.`],
    isCutOff(status)
      ? ["The other replicas may have a quorum and act: look at their pages, or run ", tree("code", {}, "allclear status"), " on their VMs, before you do anything here. What this page shows of other VMs is as old as the loss of the quorum. From here no hook starts and no event is approved, unless an operator approves an event on this replica alone."]
      : "Nothing is decided until both voters reach each other. But a replica of a pair may approve user-initiated events by itself, and an operator may approve an event on one replica alone. Each event below shows its case.",
    "Azure starts its planned events when their notice ends.",
    reached.length < needed && ["To end this, bring back ", outside((!leads && list(lost)) || "the other voters"), " or the network between the voters. On each VM, ",
      tree("code", {}, plain(status.doctor)), " shows the cause."],
  ];
  return tree("ul", { class: "meaning" }, points.filter(Boolean).map((point) => tree("li", {}, point)));
}

function drawSummary(status, found, lost) {
  const { mark, level, label, text } = found;
  const can = lost ? null : ability(status, now());
  fill(place("summary"), tree("section", { class: `summary is-${level}`, "aria-labelledby": "summary-title" },
    tree("p", { class: "label" }, tree("span", { class: "mark", "aria-hidden": "true" }, `${mark} `), label),
    tree("h2", { id: "summary-title" }, outside(found.title)),
    text && (text.nodeName === "UL" ? text : tree("p", {}, text)),
    can && status.quorum && tree("p", { class: "ability" }, can.sentence),
    can && can.worries.length > 0 && tree("ul", { class: "worries" }, can.worries.map((worry) => tree("li", {}, worry)))));
}

function drawFooter(status) {
  if (!status) return;
  const zone = -new Date().getTimezoneOffset();
  const local = zone === 0 ? "" : ` (here UTC${zone < 0 ? "−" : "+"}${span(Math.abs(zone) * 60_000).replace(" 00 s", "").replace(" min", " min")})`;
  fill(place("footer"), tree("p", {}, "Times are UTC", local, `. Now it is ${time(now(), now())}. `,
    "This page is read-only. To act, use the command ", tree("code", {}, "allclear"), " on the VM of any replica. ",
    `Version ${status.version}, `, "machine-readable: ", tree("a", { href: "/v1/status" }, "status"), ", ",
    tree("a", { href: "/v1/events" }, "events"), "."));
}
