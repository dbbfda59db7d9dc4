// The commands that act on an event, to copy. The page itself changes nothing.

import { plain, tree } from "./tree.js";
import { instant, time } from "./words.js";

// As a shell reads it; nothing where a name has letters that nobody can check by looking.
function quoted(text) {
  if (/^[A-Za-z0-9._/#:@%+=,-]+$/.test(text)) return text.startsWith("-") ? null : text.includes("#") ? `'${text}'` : text;
  return plain(text) === text && !text.startsWith("-") ? `'${text.replaceAll("'", "'\\''")}'` : null;
}

const HELD_FOR = 2 * 3_600_000;
// Where packages put the configuration.
const DOCTOR = "allclear doctor --config /etc/allclear/allclear.toml";

// an operator decides without a quorum, and is told what that overrides
function approveAlone({ other_voters: others, overrides }) {
  const known = overrides.length ? plain(overrides.join("; ")) : "nothing";
  return `Approve it on this replica alone: no hook runs for it, and ${plain(others.join(", "))} may have a quorum, hold it, or approve another event at the same time; what this replica knows against it: ${known}`;
}

export function commandsFor(event, status, now) {
  const id = quoted(event.id);
  if (id === null) {
    return [tree("p", {}, "This event's id has letters that should not be copied into a shell: ask with ", tree("code", {}, "allclear events --json"), ".")];
  }
  const code = event.blocker?.code;
  const hooks = (event.blocker?.hooks ?? []).filter((hook) => quoted(hook) !== null);
  const at = instant(event.not_before);
  // what its notice starts nobody holds
  const ends = at > now ? `; from ${time(at, now)} UTC on the platform may start it all the same` : "";
  const isLong = at - now > HELD_FOR;
  const [span, until] = isLong ? ["until its notice ends", new Date(at).toISOString()] : ["for two hours from now", "2h"];
  // without a quorum whatever is asked for is refused
  const isOpen = ["announced", "preparing"].includes(event.stage) && !event.drill && status.quorum;
  // an approval overrules no hold, no pause and no disruption budget, and needs somebody who can post it
  const mayApprove = isOpen && !event.hold && !status.paused && !["budget", "deciding", "no_healthy_channel"].includes(code);
  // what is left to others is not approved from here anyway
  const mayHalt = isOpen && code !== "observing" && !(at <= now);
  const why = "--reason \"why\"";
  const alone = event.blocker?.isolated_approval;
  const all = [
    !status.quorum && ["See who is out of reach, on each of the VMs", "allclear status"],
    ["no_quorum", "no_healthy_channel", "posting", "post_failed", "views_differ"].includes(code) && ["See what is wrong, on each of the VMs", DOCTOR],
    alone && [approveAlone(alone), `allclear approve ${id} --alone --revision ${event.revision} ${why}`],
    event.drill && status.quorum && ["End the drill; what it took away is put back", `allclear drill --end ${id}`],
    isOpen && event.hold && ["Release it: it is approved as soon as nothing else is in the way, and the platform may start it at once", `allclear release ${id} ${why}`],
    status.paused && isOpen && ["End the pause: approvals go on, and the platform may start at once what is approved", `allclear resume ${why}`],
    ...hooks.map((hook) => isOpen && [`Do not wait for the hook ${plain(hook)}; if it runs it is stopped. When nothing else is in the way, the event is approved`, `allclear skip ${id} ${quoted(hook)} ${why}`]),
    mayApprove && ["Approve it now, without what is left of its preparation: the platform may start it at once. Refused where the event has changed meanwhile; look again then", `allclear approve ${id} --revision ${event.revision} ${why}`],
    mayHalt && [`${event.hold ? "Hold it longer" : "Hold it"}: no approval from here ${span}; its members stay in service, or return${ends}`, `allclear hold ${id} --until ${until} ${why}`],
    mayHalt && [`Hold everything${status.paused ? " longer" : ""}: no approval of any event ${span}`, `allclear pause --until ${until} ${why}`],
    ["Everything that is known of it", `allclear explain ${id}`],
  ].filter(Boolean);
  const isGiven = ["claimed", "approved", "started"].includes(event.stage) && !event.drill && event.approvals.length > 0;
  const stand = isGiven ? "Nothing can be held back any more: the approval is assigned to a replica, and posted until the platform takes it."
    : !status.quorum ? `Before there is a quorum, no command can hold, release or approve anything${alone ? ", except on this replica alone" : ""}.` : null;
  return [
    stand && tree("p", { class: "stand" }, stand),
    tree("ul", { class: "commands" }, all.map(([what, command]) => tree("li", { "data-key": what },
      tree("p", { class: "what" }, what),
      tree("div", { class: "to-copy" }, tree("code", {}, command), button(command, what))))),
  ];
}

// Only where the browser lets a page copy: over https, and on the machine itself.
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
