// The commands that act on an event, to copy. The page itself changes nothing.

import { plain, tree } from "./tree.js";

// As a shell reads it; nothing where a name has letters that nobody can check by looking.
function quoted(text) {
  if (/^[A-Za-z0-9._/#:@%+=,-]+$/.test(text)) return text.startsWith("-") ? null : text.includes("#") ? `'${text}'` : text;
  return plain(text) === text && !text.startsWith("-") ? `'${text.replaceAll("'", "'\\''")}'` : null;
}

// Where packages put the configuration.
const DOCTOR = "allclear doctor --config /etc/allclear/allclear.toml";

export function commandsFor(event, status) {
  const id = quoted(event.id);
  if (id === null) {
    return [tree("p", {}, "This event's id has letters that should not be copied into a shell: ask with ", tree("code", {}, "allclear events --json"), ".")];
  }
  const code = event.blocker?.code;
  const hooks = (event.blocker?.hooks ?? []).filter((hook) => quoted(hook) !== null);
  // without a quorum whatever is asked for is refused
  const isOpen = ["announced", "preparing"].includes(event.stage) && !event.drill && status.quorum;
  // an approval overrules no hold, no pause and no disruption budget, and needs somebody who can post it
  const mayApprove = isOpen && !event.hold && !status.paused && !["budget", "deciding", "no_healthy_channel"].includes(code);
  // what is left to others is not approved from here anyway
  const mayHalt = isOpen && code !== "observing";
  const why = "--reason \"why\"";
  const all = [
    !status.quorum && ["See who is out of reach, on each of the VMs", "allclear status"],
    ["no_quorum", "no_healthy_channel"].includes(code) && ["See what is wrong, on each of the VMs", DOCTOR],
    event.drill && status.quorum && ["End the drill; what it took away is put back", `allclear drill --end ${id}`],
    isOpen && event.hold && ["Release it: end the hold", `allclear release ${id} ${why}`],
    status.paused && isOpen && ["Let approvals go on: end the pause", `allclear resume ${why}`],
    ...hooks.map((hook) => isOpen && [`Do not wait for the hook ${plain(hook)}; if it runs it is stopped`, `allclear skip ${id} ${quoted(hook)} ${why}`]),
    mayApprove && ["Approve it now, without what is left of its preparation", `allclear approve ${id} --revision ${event.revision} ${why}`],
    mayHalt && [`${event.hold ? "Hold it longer" : "Hold it"}: no approval from here for two hours from now; hooks go on`, `allclear hold ${id} --until 2h ${why}`],
    mayHalt && [`Hold everything${status.paused ? " longer" : ""}: no approval of any event for two hours from now`, `allclear pause --until 2h ${why}`],
    ["Everything that is known of it", `allclear explain ${id}`],
  ].filter(Boolean);
  return [
    !status.quorum && tree("p", {}, "Nothing can be held, released or approved before there is a quorum."),
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
