// Workloads by group, with the role and state of each member, and the remaining budget of the group.

import { cell, fill, outside, rowHead, state, table, tree } from "./tree.js";
import { instant, many, shortTimes, time, title } from "./words.js";

// The limit of rows in a table.
const MOST = 100;

export function drawWorkloads(section, status) {
  const standings = new Map(status.members.map((member) => [`${member.vm}\n${member.workload}`, standing(member, status)]));
  const unasked = new Set(status.members.filter((member) => !member.asked).map((member) => `${member.vm}\n${member.workload}`));
  const alone = status.workloads.filter((workload) => workload.group === null);
  fill(section,
    tree("h2", { id: "workloads-title" }, "Workloads"),
    status.workloads.length === 0 && tree("p", {}, "No workload is registered, so allclear prepares nothing."),
    status.groups.map((group) => [
      tree("h3", { "data-key": `group ${group.name}` }, "Group ", outside(group.name)),
      tree("p", { "data-key": `budget ${group.name}` }, budget(group, status)),
      members(status.workloads.filter((workload) => workload.group === group.name), standings, unasked, group.name),
    ]),
    alone.length > 0 && [
      tree("h3", { "data-key": "alone" }, "Without a group"),
      tree("p", { "data-key": "budget alone" }, "No event waits for these workloads, whether in service or out."),
      members(alone, standings, new Set(), ""),
    ]);
}

// The reason why a member is out of service; null while the member is in service.
function standing({ state, by, owed }, { events, now }) {
  const event = events.find((event) => event.id === by);
  const name = event ? title(event) : by;
  switch (state) {
    case "in_service": return null;
    case "leaving": return `leaving: ${name}`;
    case "out_of_service": return `out of service: ${name}`;
    case "returning": return `not back yet after ${name}: ${shortTimes(owed, instant(now))}`;
    case "not_ready": return "not ready";
    default: return "unknown: its replica is unreachable";
  }
}

function budget({ max_unavailable: most, members }, { quorum }) {
  const out = members.filter((member) => member.unavailable_by !== null).length;
  const left = most - out;
  const may = `At most ${most} of ${many(members.length, "member")} may be out of service at once. `;
  if (!quorum) return [may, "Without a quorum, how many are out of service is not known here."];
  if (out === 0) return [may, "All members are in service."];
  const isAre = out === 1 ? "is" : "are";
  return [may, tree("strong", {}, `Now ${out} ${isAre} out of service${left > 0 ? `; ${left} more may be.` : ": until fewer members are out of service, no hook stops another member, and no event for another member is approved."}`)];
}

function members(workloads, standings, unasked, group) {
  const key = (workload) => `${workload.vm}\n${workload.name}`;
  const rows = workloads.slice(0, MOST).map((workload) => row(workload, standings.get(key(workload)), !unasked.has(key(workload))));
  return [
    table(`table ${group}`, group ? "Members of the group" : "Workloads without a group", ["Workload", "VM", "Role", "State"], rows),
    workloads.length > MOST && tree("p", { class: "aside", "data-key": `more ${group}` }, `${workloads.length - MOST} more are not shown.`),
  ];
}

// The role, or the last report, which may be old.
function known({ role, last_role: last }) {
  if (role === "primary") return tree("strong", {}, role);
  if (!last) return role;
  const since = instant(last.unreachable_since);
  if (!isNaN(since)) return `unknown (${last.role} before ${time(since, Date.now())} UTC)`;
  return last.role === "primary" ? "unknown (says primary, and so does another member)" : `unknown (${last.role} at last)`;
}

function row(workload, why, asked) {
  const { name, vm, connected, phases } = workload;
  const serves = asked ? "in service" : "in service, without a check by a ready hook";
  const what = why ? outside(why) : connected ? serves : "not connected";
  return [
    `${vm}\n${name}`,
    rowHead(name, phases.length ? phases.join(", ") : "no hooks"),
    cell(outside(vm)),
    cell(known(workload)),
    state(connected && !why, what),
  ];
}
