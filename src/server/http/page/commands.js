// The commands for an event, ready to copy. The page is read only.

import { outside, plain, tree } from "./tree.js";
import { sentence, shortTimes } from "./words.js";

// The text quoted for a shell; null if the text has characters that a reader cannot check by eye.
function quoted(text) {
  if (/^[A-Za-z0-9._/#:@%+=,-]+$/.test(text)) return text.startsWith("-") ? null : text.includes("#") ? `'${text}'` : text;
  return plain(text) === text && !text.startsWith("-") ? `'${text.replaceAll("'", "'\\''")}'` : null;
}

// A command for the replicas of this cluster: their operator socket may not have the usual path.
export function commandLine(command, status) {
  const endpoint = status.endpoint && quoted(status.endpoint);
  return endpoint ? `${command} --endpoint ${endpoint}` : command;
}

export function commandsFor(event, status, now) {
  const id = quoted(event.id);
  const all = event.advice.map(({ does, command, takes_endpoint: takes }) =>
    [sentence(shortTimes(does, now)), takes ? commandLine(command, status) : command]);
  if (id) all.push(["Show all details of the event.", commandLine(`allclear explain ${id}`, status)]);
  const isGiven = ["claimed", "approved", "started"].includes(event.stage) && !event.drill && event.approvals.length > 0;
  const stand = isGiven ? "No command can stop the approval any more: the approval is assigned or given."
    : !status.quorum ? `Without a quorum, no command can hold or release an event${event.blocker?.isolated_approval ? "; an operator may approve the event on this replica alone" : ", and none can approve the event"}.` : null;
  return [
    stand && tree("p", { class: "stand" }, stand),
    tree("ul", { class: "commands" }, all.map(([what, command]) => tree("li", { "data-key": what },
      tree("p", { class: "what" }, outside(what)),
      tree("div", { class: "to-copy" }, tree("code", {}, plain(command)), button(command, what))))),
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
