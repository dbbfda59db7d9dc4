// The commands that act on an event, to copy. The page itself changes nothing.

import { plain, tree } from "./tree.js";

// As a shell reads it; nothing where a name has letters that nobody can check by looking.
function quoted(text) {
  if (/^[A-Za-z0-9._/#:@%+=,-]+$/.test(text)) return text.startsWith("-") ? null : text.includes("#") ? `'${text}'` : text;
  return plain(text) === text && !text.startsWith("-") ? `'${text.replaceAll("'", "'\\''")}'` : null;
}

export function commandsFor(event, status) {
  const id = quoted(event.id);
  if (id === null) {
    return [tree("p", {}, "This event's id has letters that should not be copied into a shell: ask with ", tree("code", {}, "allclear events --json"), ".")];
  }
  const hooks = (event.blocker?.hooks ?? []).filter((hook) => quoted(hook) !== null);
  const isOpen = ["announced", "preparing"].includes(event.stage);
  // an approval overrules no hold, no pause and no disruption budget
  const mayApprove = isOpen && !event.drill && !event.hold && !status.paused && event.blocker?.code !== "budget";
  const why = "--reason \"why\"";
  const all = [
    status.paused && isOpen && ["Let approvals go on", `allclear resume ${why}`],
    isOpen && event.hold && ["Release it", `allclear release ${id} ${why}`],
    ...hooks.map((hook) => isOpen && [`Do not wait for the hook ${plain(hook)}`, `allclear skip ${id} ${quoted(hook)} ${why}`]),
    mayApprove && ["Approve it now, without what is left of its preparation", `allclear approve ${id} --revision ${event.revision} ${why}`],
    isOpen && !event.hold && !event.drill && ["Hold it: no approval from here for two hours", `allclear hold ${id} --until 2h ${why}`],
    ["Everything that is known of it", `allclear explain ${id}`],
  ].filter(Boolean);
  return [
    !status.quorum && tree("p", {}, "All but the last need a quorum."),
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
