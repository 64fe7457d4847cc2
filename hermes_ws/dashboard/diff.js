// What changed in a text, line by line.

import { element } from "./dom.js";
import { visible } from "./paint.js";
import { text } from "./texts.js";

/** @typedef {{kind: "same" | "gone" | "new" | "skip", text: string}} Line */

/** Lines of each side that are compared one by one; of more, all are said to be different. */
const MOST_COMPARED = 1500;

/** Lines around a change that are shown with it. */
const AROUND = 3;

/** Lines of a difference that are drawn. */
const MOST_SHOWN = 2000;

/** @param {string} before @param {string} after @returns {Line[]} */
export function differences(before, after) {
  const old = lines(before);
  const now = lines(after);
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  return folded([
    ...old.slice(0, start).map(same),
    ...middle(old.slice(start, old.length - end), now.slice(start, now.length - end)),
    ...old.slice(old.length - end).map(same),
  ]);
}

/** The lines between the first and the last that differ, by their longest common subsequence. @param {string[]} old @param {string[]} now @returns {Line[]} */
function middle(old, now) {
  if (old.length > MOST_COMPARED || now.length > MOST_COMPARED) return [...old.map(gone), ...now.map(added)];
  const width = now.length + 1;
  const longest = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      longest[i * width + j] = old[i] === now[j] ? longest[(i + 1) * width + j + 1] + 1 : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  /** @type {Line[]} */
  const found = [];
  let i = 0;
  let j = 0;
  while (i < old.length && j < now.length) {
    if (old[i] === now[j]) {
      found.push(same(old[i++]));
      j += 1;
    } else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) found.push(gone(old[i++]));
    else found.push(added(now[j++]));
  }
  return [...found, ...old.slice(i).map(gone), ...now.slice(j).map(added)];
}

/** Long stretches without a change become one line. @param {Line[]} found */
function folded(found) {
  const near = new Uint8Array(found.length);
  found.forEach((line, at) => {
    if (line.kind !== "same") near.fill(1, Math.max(0, at - AROUND), at + AROUND + 1);
  });
  /** @type {Line[]} */
  const shown = [];
  found.forEach((line, at) => {
    if (near[at]) shown.push(line);
    else if (shown.at(-1)?.kind !== "skip") shown.push({ kind: "skip", text: "" });
  });
  return shown;
}

/** A unified difference, by file. What a part holds is counted by its head: a line may begin like anything. @param {string} unified @returns {{name: string, lines: Line[]}[]} */
export function parsed(unified) {
  /** @type {{name: string, lines: Line[]}[]} */
  const files = [];
  let old = 0;
  let now = 0;
  for (const line of unified.split("\n")) {
    const head = old + now > 0 ? null : /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
    if (head) {
      [old, now] = [Number(head[1] ?? 1), Number(head[2] ?? 1)];
      if (files.at(-1)?.lines.length) files.at(-1)?.lines.push({ kind: "skip", text: "" });
    } else if (old + now === 0) {
      if (line.startsWith("--- ")) files.push({ name: line.slice(4), lines: [] });
      else if (line.startsWith("+++ ") && files.length) files[files.length - 1].name = line.slice(4).replace(/^b(?=\/)/, "");
    } else if (!line.startsWith("\\")) {
      const kind = line.startsWith("-") ? "gone" : line.startsWith("+") ? "new" : "same";
      files.at(-1)?.lines.push({ kind, text: line.slice(1) });
      if (kind !== "new") old -= 1;
      if (kind !== "gone") now -= 1;
    }
  }
  return files;
}

/** A text as it is, compared with nothing. @param {string} said @returns {Line[]} */
export function plain(said) {
  return lines(said).map(same);
}

/** @param {Line[]} found @param {string} name */
export function drawn(found, name) {
  const count = (/** @type {string} */ kind) => found.filter((line) => line.kind === kind).length;
  const changed = found.some((line) => line.kind === "new" || line.kind === "gone");
  const rows = found.slice(0, MOST_SHOWN).map((line) => {
    if (line.kind === "skip") return element("span.skip", { "aria-hidden": "true" }, "⋯\n");
    const tag = line.kind === "gone" ? "del" : line.kind === "new" ? "ins" : "span";
    // The sign is for the eye, and for who copies; what is read aloud says it by the element.
    const sign = line.kind === "gone" ? "-" : line.kind === "new" ? "+" : " ";
    return element(tag, {}, element("span.sign", { "aria-hidden": "true" }, sign), `${visible(line.text)}\n`);
  });
  return element(
    "figure.diff",
    {},
    element("figcaption", {}, element("code", { dir: "ltr" }, name), changed && [" ", element("span.plus", { dir: "ltr" }, `+${count("new")}`), " ", element("span.minus", { dir: "ltr" }, `−${count("gone")}`)]),
    element("pre", { tabindex: "0", dir: "ltr", "aria-label": `${text(changed ? "changesOf" : "contentOf")} ${name}` }, rows, found.length > MOST_SHOWN && "…"),
  );
}

/** @param {string} said */
function lines(said) {
  if (said === "") return [];
  const all = said.split("\n");
  if (all.at(-1) === "") all.pop();
  return all;
}

/** @param {string} said @returns {Line} */
function same(said) {
  return { kind: "same", text: said };
}

/** @param {string} said @returns {Line} */
function gone(said) {
  return { kind: "gone", text: said };
}

/** @param {string} said @returns {Line} */
function added(said) {
  return { kind: "new", text: said };
}
