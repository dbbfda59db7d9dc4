// The page's tree: made anew from what is known, and laid over what is there. What comes from outside is only ever text.

// tree("p", { class: "note" }, "text", other, [more]): attributes that are null, undefined or false are left out.
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

// A table whose rows remain rows where they are shown as lines.
export function table(key, caption, columns, rows) {
  const cells = ([name, ...rest]) => [name, ...rest.map((cell, place) => (cell.setAttribute("data-name", columns[place + 1]), cell))];
  return tree("table", { role: "table", "data-key": key },
    tree("caption", { class: "unseen" }, caption),
    tree("thead", { role: "rowgroup" },
      tree("tr", { role: "row" }, columns.map((text) => tree("th", { scope: "col", role: "columnheader" }, text)))),
    tree("tbody", { role: "rowgroup" },
      rows.map(([key, ...all]) => tree("tr", { role: "row", "data-key": key }, cells(all)))));
}

// A cell that says whether that is well.
export function state(isWell, ...text) {
  return tree("td", { role: "cell", class: isWell ? "is-good" : "is-bad" },
    tree("span", { class: "mark", "aria-hidden": "true" }, isWell ? "✓ " : "✕ "), text);
}

export const cell = (...text) => tree("td", { role: "cell" }, text);

export const rowHead = (name, beside) =>
  tree("th", { scope: "row", role: "rowheader" }, outside(name), tree("span", { class: "beside" }, beside));

// From outside: kept apart from what stands around it, whichever way it is written.
export function outside(text) {
  return tree("bdi", {}, plain(text));
}

// Letters that are not seen, or that turn others around, are written as their number.
export function plain(text) {
  return String(text ?? "").replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}]/gu, (letter) =>
    letter === "\n" || letter === "\t" ? " " : `⟨U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

// Makes the children of a node these. A child that is there stays, with its focus and whether it is open.
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
    // whoever reads opens and closes
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
