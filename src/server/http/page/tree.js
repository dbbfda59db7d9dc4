// The DOM tree: built from the status, then merged into the existing nodes. External values are inserted as text only.

// tree("p", { class: "note" }, "text", other, [more]): null, undefined or false attributes are left out.
export function tree(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (["left", "right", "width"].includes(key)) node.style.setProperty(key, `${value}%`);
    else if (key === "press") node.press = value;
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// A table with explicit roles, so that rows remain rows on narrow screens, where CSS shows a row as lines.
export function table(key, caption, columns, rows) {
  const cells = ([name, ...rest]) => [name, ...rest.map((cell, place) => (cell.setAttribute("data-name", columns[place + 1]), cell))];
  return tree("table", { role: "table", "data-key": key },
    tree("caption", { class: "unseen" }, caption),
    tree("thead", { role: "rowgroup" },
      tree("tr", { role: "row" }, columns.map((text) => tree("th", { scope: "col", role: "columnheader" }, text)))),
    tree("tbody", { role: "rowgroup" },
      rows.map(([key, ...all]) => tree("tr", { role: "row", "data-key": key }, cells(all)))));
}

// A cell with a mark for good or bad.
export function state(isWell, ...text) {
  return tree("td", { role: "cell", class: isWell ? "is-good" : "is-bad" },
    tree("span", { class: "mark", "aria-hidden": "true" }, isWell ? "✓ " : "✕ "), text);
}

export const cell = (...text) => tree("td", { role: "cell" }, text);

export const rowHead = (name, beside) =>
  tree("th", { scope: "row", role: "rowheader" }, outside(name), tree("span", { class: "beside" }, beside));

// An external text, isolated from the text direction of its surroundings.
export function outside(text) {
  return tree("bdi", {}, plain(text));
}

// Invisible and bidirectional control characters are replaced by their code point.
export function plain(text) {
  return String(text ?? "").replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}]/gu, (letter) =>
    letter === "\n" || letter === "\t" ? " " : `⟨U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

// Sets the children of a node. An existing child is kept, with its focus and its open state.
export function fill(node, ...children) {
  lay(node, tree("div", {}, ...children));
}

function lay(node, wanted) {
  const here = [...node.childNodes];
  const byKey = new Map(here.filter((child) => child.dataset?.key).map((child) => [child.dataset.key, child]));
  let next = node.firstChild;
  for (const child of [...wanted.childNodes]) {
    const key = child.dataset?.key;
    let found = key ? byKey.get(key) : next;
    if (found && (found.nodeName !== child.nodeName || found.dataset?.key !== key)) found = undefined;
    if (!found) {
      node.insertBefore(child, next);
      continue;
    }
    if (found !== next) node.insertBefore(found, next);
    else next = next.nextSibling;
    patch(found, child);
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

function patch(node, wanted) {
  if (node.nodeType === Node.TEXT_NODE) {
    if (node.data !== wanted.data) node.data = wanted.data;
    return;
  }
  for (const { name } of [...node.attributes]) {
    // The reader opens and closes details.
    if (!wanted.hasAttribute(name) && name !== "open") node.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (name !== "open" && name !== "style" && node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
  if (wanted.hasAttribute("style") && node.style.cssText !== wanted.style.cssText) node.style.cssText = wanted.style.cssText;
  node.press = wanted.press;
  lay(node, wanted);
}

document.addEventListener("click", (click) => click.target.closest?.("button")?.press?.(click.target.closest("button")));
