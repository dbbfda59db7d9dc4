// The commands for an event, ready to copy. The page is read only.

import { plain, tree } from "./tree.js";
import { blockersOf, instant, primaries, time } from "./words.js";

// The text quoted for a shell; null if the text has characters that a reader cannot check by eye.
function quoted(text) {
  if (/^[A-Za-z0-9._/#:@%+=,-]+$/.test(text)) return text.startsWith("-") ? null : text.includes("#") ? `'${text}'` : text;
  return plain(text) === text && !text.startsWith("-") ? `'${text.replaceAll("'", "'\\''")}'` : null;
}

const HELD_FOR = 2 * 3_600_000;
// The path is the one of the Debian package.
export const DOCTOR = "allclear doctor --config /etc/allclear/allclear.toml";

// A command for the replicas of this cluster: their operator socket may not have the usual path.
export function commandLine(command, status) {
  const endpoint = status.endpoint && quoted(status.endpoint);
  return endpoint ? `${command} --endpoint ${endpoint}` : command;
}

const isMove = (name) => (name.split("/")[2] ?? "").startsWith("failover");

// The explanation of an operator's approval without a quorum, with the blockers that the approval overrides. Of a pair
// nobody has a quorum without the other.
function approveAlone({ other_voters: others, overrides }) {
  const known = overrides.length ? plain(overrides.join("; ")) : "nothing";
  return `Approve the event on this replica alone: no hook runs for the event, and ${plain(others.join(", "))} may ${others.length > 1 ? "have a quorum, " : ""}hold the event, or approve another event at the same time; reasons against the approval that this replica knows: ${known}`;
}

// The event as far as it takes down this member.
const ofMember = (event, member) => ({ ...event, takes_down: event.takes_down.filter(({ vm, workload }) => `${vm}/${workload}` === member) });
const takenDown = (told) => told.map((one) => `; ${plain(one).replace(/\.$/, "")}, which is NOT moved and goes down`).join("");

export function commandsFor(event, status, now) {
  const id = quoted(event.id);
  if (id === null) {
    return [tree("p", {}, "The id of this event has letters that should not be copied into a shell: use ", tree("code", {}, commandLine("allclear events --json", status)), ".")];
  }
  const blockers = blockersOf(event);
  const has = (...codes) => blockers.some(({ code }) => codes.includes(code));
  const hooks = blockers.flatMap(({ code, hooks: names }) => names.map((name) => ({ name, isFailed: code === "hook_failed" })))
    .filter(({ name }) => quoted(name) !== null);
  const at = instant(event.not_before);
  // A hold does not keep Azure from starting the event at the end of the notice.
  const ends = at > now ? `; from ${time(at, now)} UTC on Azure may start the event regardless` : "";
  const isLong = at - now > HELD_FOR;
  const [span, until] = isLong ? ["until the notice ends", new Date(at).toISOString()] : ["for two hours from now", "2h"];
  // Without a quorum a replica refuses all commands.
  const isOpen = ["announced", "preparing"].includes(event.stage) && !event.drill && status.quorum;
  // An approval does not override a hold or a pause, and needs a replica with a healthy metadata channel.
  const approves = isOpen && !event.approved_by_operator && !event.hold && !status.paused && !has("deciding", "no_healthy_channel");
  const [mayApprove, mayOverdraw] = [approves && !has("budget"), approves && has("budget")];
  // An observed event is never approved by this cluster, so a hold has no effect.
  const mayHalt = isOpen && !has("observing") && !(at <= now);
  const why = "--reason 'WHY'";
  const unmoved = takenDown(primaries(event, now));
  // A running failover may end before the approval, and move the primary.
  const moves = event.hooks.some(({ phase, outcome }) => phase === "failover" && !outcome);
  const unrestored = blockers.flatMap(({ unrestored: members }) => members).filter((member) => quoted(member) !== null);
  const disconnected = blockers.map(({ disconnected: member }) => member).filter((member) => member && quoted(member) !== null);
  const alone = event.blocker?.isolated_approval;
  const vm = blockers.map((blocker) => blocker.approvable_by_hand).find(Boolean);
  const azure = vm && quoted(vm) && `az maintenance scheduledevents acknowledge --subscription SUBSCRIPTION --resource-group GROUP --resource-type virtualMachines --resource-name ${quoted(vm)} --scheduled-events-id ${id}`;
  const all = [
    !status.quorum && ["Find unreachable replicas, on each of the VMs", "allclear status"],
    has("no_quorum", "no_healthy_channel", "posting", "post_failed", "views_differ") && ["Find the cause, on each of the VMs", DOCTOR],
    azure && ["The event may be approved, and lacks only an endpoint. If none can be repaired in time, approve the event with the Azure CLI (extension maintenance), from any machine (of a scale set: the type virtualMachineScaleSets, and the name of the set)", azure],
    alone && [approveAlone(alone), `allclear approve ${id} --alone --revision ${event.revision} ${why}`],
    event.drill && status.quorum && ["End the drill; allclear restores the prepared workloads", `allclear drill --end ${id}`],
    isOpen && has("too_early") && ["Prepare the event now, or at a time with --at, with all hooks: allclear approves the event when it is prepared, and Azure may start it at once", `allclear prepare ${id} ${why}`],
    ...hooks.flatMap(({ name, isFailed }) => [
      isOpen && isFailed && [`Run the hook ${plain(name)} again, once the cause of its failure is mended`, `allclear retry ${id} ${quoted(name)} ${why}`],
      isOpen && [`Skip the hook ${plain(name)}: a running hook is stopped, and allclear approves the event when no other blocker remains${isMove(name) ? unmoved : ""}`, `allclear skip ${id} ${quoted(name)} ${why}`],
    ]),
    isOpen && event.hold && ["Release the event: allclear approves the event as soon as no other blocker remains, and Azure may start the event at once", `allclear release ${id} ${why}`],
    status.paused && isOpen && ["End the pause: approvals continue, and Azure may start approved events at once", `allclear resume ${why}`],
    isOpen && has("budget") && ["Show which members are out of service, and which hooks are owed", "allclear workload list"],
    ...unrestored.map((member) => isOpen && [`Repair ${plain(member)}; if it serves already, declare it in service`, `allclear workload restored ${quoted(member)} ${why}`]),
    ...disconnected.map((member) => isOpen && [`Start ${plain(member)}; if it never connects again, remove its registration, on its VM: the event then goes on without its hooks${takenDown(primaries(ofMember(event, member), now))}`, `allclear workload remove ${quoted(member)} ${why}`]),
    mayOverdraw && [`Approve the event although other members of its groups are out of service, without the remaining preparation: Azure may start the event at once${unmoved}`, `allclear approve ${id} --revision ${event.revision} --over-budget ${why}`],
    mayApprove && [`Approve the event now, without the remaining preparation: Azure may start the event at once. The command is refused if the event has changed meanwhile; check the event again then${moves ? "" : unmoved}`, `allclear approve ${id} --revision ${event.revision} ${why}`],
    // A second hold or pause replaces the first, and could end earlier.
    mayHalt && !event.hold && [`Hold the event: allclear does not approve the event ${span}; the members of the event stay in service, or return${ends}`, `allclear hold ${id} --until ${until} ${why}`],
    mayHalt && !event.hold && !status.paused && [`Pause all approvals: no approval of any event ${span}`, `allclear pause --until ${until} ${why}`],
    ["Show all details of the event", `allclear explain ${id}`],
  ].filter(Boolean).map(([what, command]) => [what, command === DOCTOR || command === azure ? command : commandLine(command, status)]);
  const isGiven = ["claimed", "approved", "started"].includes(event.stage) && !event.drill && event.approvals.length > 0;
  const stand = isGiven ? "No command can stop the approval any more: the approval is assigned or given."
    : !status.quorum ? `Without a quorum, no command can hold or release an event${alone ? "; an operator may approve the event on this replica alone" : ", and none can approve the event"}.` : null;
  return [
    stand && tree("p", { class: "stand" }, stand),
    tree("ul", { class: "commands" }, all.map(([what, command]) => tree("li", { "data-key": what },
      tree("p", { class: "what" }, what),
      tree("div", { class: "to-copy" }, tree("code", {}, command), button(command, what))))),
  ];
}

// Browsers allow a page to copy only over HTTPS and on localhost.
function button(command, what) {
  if (!navigator.clipboard) return null;
  const press = async (pressed) => {
    await navigator.clipboard.writeText(command).catch(() => undefined);
    document.getElementById("spoken").textContent = "Copied.";
    pressed.classList.add("is-copied");
    setTimeout(() => pressed.classList.remove("is-copied"), 1500);
  };
  return tree("button", { type: "button", press }, "Copy", tree("span", { class: "unseen" }, `: ${what}`));
}
