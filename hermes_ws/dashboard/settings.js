// The settings of a profile as a form, made from what the server says that each of them takes.

import { element, put } from "./dom.js";
import { clear, editor, spoken } from "./editors.js";
import { agreed, said } from "./forms.js";
import { text } from "./texts.js";

/** @typedef {import("../../clients/typescript/src/contract.ts").SettingRow} Setting */
/** @typedef {{key: string, words: string, written: () => boolean, root: HTMLElement}} Line */

/** @type {import("./manage.js").Tab} */
export async function settingsTab({ gateway, profile }) {
  const shown = await gateway.call("config.show", { profile });
  /** @type {{lines: Line[], card: HTMLElement}[]} */
  const sections = shown.sections.map((section) => {
    const tally = element("span.tally");
    const lines = section.settings.map((setting) => line(gateway, profile, setting, () => count()));
    const count = () => {
      const written = lines.filter((each) => each.written()).length;
      put(tally, written ? text("written", { n: String(written) }) : "");
    };
    count();
    const name = section.name ? spoken(section.name) : text("otherSettings");
    const card = element(
      "details.card.section",
      { "data-section": section.name },
      element("summary", {}, element("strong", {}, name), element("span.soft", {}, section.doc.split("\n\n")[0]), tally),
      lines.map((each) => each.root),
    );
    return { lines, card };
  });
  const none = element("p.empty", { hidden: true }, text("noSettingFound"));
  const find = /** @type {HTMLInputElement} */ (element("input", { type: "search", placeholder: text("findSetting"), "aria-label": text("findSetting") }));
  const only = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox" }));
  const sift = () => {
    const asked = find.value.trim().toLowerCase();
    let found = 0;
    for (const { lines, card } of sections) {
      const fit = lines.filter((each) => each.words.includes(asked) && (!only.checked || each.written()));
      for (const each of lines) each.root.toggleAttribute("hidden", !fit.includes(each));
      card.toggleAttribute("hidden", !fit.length);
      card.toggleAttribute("open", fit.length > 0 && (asked !== "" || only.checked));
      found += fit.length;
    }
    none.toggleAttribute("hidden", found > 0);
  };
  find.addEventListener("input", sift);
  only.addEventListener("change", sift);
  return [
    element("p.soft", {}, text("settingsFile"), " ", element("code", {}, shown.source)),
    element("div.sieve", {}, find, element("label.inline", {}, only, text("onlyWritten"))),
    ...sections.map(({ card }) => card),
    none,
    shown.foreign.length > 0 && element("p.soft", {}, text("foreign"), " ", shown.foreign.map((name) => element("code.chip", {}, name))),
  ];
}

/**
 * @param {import("./gateway.js").Gateway} gateway
 * @param {string} profile
 * @param {Setting} given
 * @param {() => void} counted
 * @returns {Line}
 */
function line(gateway, profile, given, counted) {
  let setting = given;
  const root = /** @type {HTMLFormElement} */ (element("form.setting", { "data-key": given.key, novalidate: true, "aria-label": given.key }));
  const told = element("output.said", { role: "status" });
  const draw = () => {
    const fields = editor(/** @type {import("./editors.js").Shape} */ (setting.shape), setting.value, spoken(setting.key));
    const before = JSON.stringify(fields.read());
    const save = element("button.primary", { type: "submit", hidden: true }, text("save"));
    const undo = element("button", { type: "button", hidden: true, onclick: () => draw() }, text("discard"));
    const reset = element("button.link", { type: "button", onclick: () => write(null) }, text("resetIt"));
    const look = () => {
      let same = false;
      try {
        same = JSON.stringify(fields.read()) === before;
      } catch {
        // What cannot be read has changed.
      }
      save.toggleAttribute("hidden", same);
      undo.toggleAttribute("hidden", same);
    };
    root.oninput = look;
    root.onchange = look;
    root.onsubmit = (event) => {
      event.preventDefault();
      clear(root);
      try {
        write(fields.read());
      } catch {
        told.classList.add("bad");
        put(told, text("seeField"));
      }
    };
    /** @param {any} value */
    const write = async (value) => {
      clear(root);
      put(told);
      told.classList.remove("bad");
      try {
        if ((await agreed(gateway, "config.set", { profile, key: setting.key, value })) === null) return;
        const { sections } = await gateway.call("config.show", { profile });
        setting = sections.flatMap((each) => each.settings).find((each) => each.key === setting.key) ?? setting;
        const within = root.contains(document.activeElement);
        draw();
        counted();
        put(told, text("saved"));
        if (within) /** @type {HTMLElement | null} */ (root.querySelector("input, select, textarea, button"))?.focus();
      } catch (error) {
        const { data } = /** @type {any} */ (error);
        told.classList.add("bad");
        put(told, data?.path?.startsWith("value") ? text("seeField") : said(error));
        const problems = data?.problems ?? (data?.path?.startsWith("value") ? [{ path: data.path, problem: said(error) }] : []);
        for (const { path, problem } of problems) fields.wrong(parts(path), problem);
        /** @type {HTMLElement | null} */ (root.querySelector("[aria-invalid]"))?.focus();
      }
    };
    put(
      root,
      fields.root,
      element(
        "p.origin",
        {},
        element(`span.badge${setting.written ? ".own" : ""}`, {}, text(setting.written ? "fromFile" : "fromDefault")),
        setting.written && element("span", {}, text("usually"), " ", element("code", {}, brief(setting.usual))),
        element("code.key", {}, setting.key),
        setting.written && reset,
      ),
      element("div.choices", {}, save, undo),
      told,
    );
  };
  draw();
  return { key: given.key, words: `${given.key} ${spoken(given.key)} ${given.doc}`.toLowerCase(), written: () => setting.written, root };
}

/** `value.mine.headers[0]` → ["mine", "headers", 0]. @param {string} path @returns {(string | number)[]} */
export function parts(path) {
  return [...path.slice("value".length).matchAll(/\.([^.[]+|\[key\])|\[(\d+)\]/g)].map(([, name, at]) => name ?? Number(at));
}

/** @param {any} value */
function brief(value) {
  if (value === null) return text("notSet");
  const written = typeof value === "string" ? value : JSON.stringify(value);
  return written.length > 60 ? `${written.slice(0, 60)}…` : written;
}
