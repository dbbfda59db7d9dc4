// Workloads by group: the role of each, and what the group may still lose.

import { cell, fill, outside, rowHead, state, table, tree } from "./tree.js";
import { many, title } from "./words.js";

// More than this nobody reads.
const MOST = 100;

export function drawWorkloads(section, status) {
  const takenBy = new Map();
  for (const group of status.groups) {
    for (const member of group.members) takenBy.set(`${member.vm}\n${member.workload}`, why(member.unavailable_by, status));
  }
  const alone = status.workloads.filter((workload) => workload.group === null);
  fill(section,
    tree("h2", { id: "workloads-title" }, "Workloads"),
    status.workloads.length === 0 && tree("p", {}, "None is registered: nothing has to be prepared."),
    status.groups.map((group) => [
      tree("h3", { "data-key": `group ${group.name}` }, "Group ", outside(group.name)),
      tree("p", { "data-key": `budget ${group.name}` }, budget(group)),
      members(status.workloads.filter((workload) => workload.group === group.name), takenBy, group.name),
    ]),
    alone.length > 0 && [
      tree("h3", { "data-key": "alone" }, "Without a group"),
      tree("p", { "data-key": "budget alone" }, "No disruption budget holds an event for these."),
      members(alone, takenBy, ""),
    ]);
}

function why(taker, { events }) {
  const event = events.find((event) => event.id === taker);
  return event ? title(event) : taker && `${taker} is out of reach`;
}

function budget({ max_unavailable: most, members }) {
  const away = members.filter((member) => member.unavailable_by !== null).length;
  const left = most - away;
  const may = `At most ${most} of ${many(members.length, "member")} may be unavailable at once. `;
  if (away === 0) return [may, "All are available."];
  const isAre = away === 1 ? "is" : "are";
  return [may, tree("strong", {}, `Now ${away} ${isAre} unavailable${left > 0 ? `; ${left} more may be.` : ": no event that takes another is approved before that changes."}`)];
}

function members(workloads, takenBy, group) {
  const rows = workloads.slice(0, MOST).map((workload) => row(workload, takenBy.get(`${workload.vm}\n${workload.name}`)));
  return [
    table(`table ${group}`, group ? "Members of the group" : "Workloads without a group", ["Workload", "VM", "Role", "State"], rows),
    workloads.length > MOST && tree("p", { class: "aside", "data-key": `more ${group}` }, `${workloads.length - MOST} more are not shown.`),
  ];
}

function row({ name, vm, role, connected, phases }, takenBy) {
  const what = takenBy ? ["unavailable: ", outside(takenBy)] : connected ? "available" : "not connected";
  return [
    `${vm}\n${name}`,
    rowHead(name, phases.length ? phases.join(", ") : "no hooks"),
    cell(outside(vm)),
    cell(role === "primary" ? tree("strong", {}, role) : role),
    state(connected && !takenBy, what),
  ];
}
