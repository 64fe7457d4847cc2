// Forms that say what became of them: at the field where the server names one, else below.

import { element, put } from "./dom.js";
import { Refusal } from "./gateway.js";
import { text } from "./texts.js";

/** What went wrong, with what to do about it. @param {unknown} error */
export function said(error) {
  return `${/** @type {Error} */ (error).message} ${/** @type {any} */ (error).hint ?? ""}`.trim();
}

/**
 * A request that the server may want a yes for; null when the person said no.
 * @template {keyof import("./gateway.js").Methods} M
 * @param {import("./gateway.js").Gateway} gateway
 * @param {M} method one that takes `consent`
 * @param {import("./gateway.js").Methods[M]["params"]} params
 * @returns {Promise<import("./gateway.js").Methods[M]["result"] | null>}
 */
export async function agreed(gateway, method, params) {
  try {
    return await gateway.call(method, params);
  } catch (error) {
    if (!(error instanceof Refusal) || error.type !== "consent_required") throw error;
    if (!confirm(error.message)) return null;
    return gateway.call(method, { ...params, consent: error.data.consent });
  }
}

/**
 * A form that says what became of it.
 * @param {string} label of its button
 * @param {(Node | string | false)[]} fields
 * @param {(read: (name: string) => string, data: FormData) => Promise<string | void>} submit gives what to say when it went well
 * @param {{primary?: boolean, danger?: boolean, about?: string, again?: boolean}} [how] `about` names what the button is for, where
 *     several are alike; `again` empties the form when it went well
 */
export function form(label, fields, submit, { primary = false, danger = false, about = "", again = false } = {}) {
  const told = element("output.said", { role: "status" });
  const button = element(`button${primary ? ".primary" : ""}${danger ? ".danger" : ""}`, { type: "submit", "aria-label": about ? `${label} ${about}` : null }, label);
  const made = /** @type {HTMLFormElement} */ (element(fields.length ? "form.row" : "form.row.bare", {}, fields, button, told));
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    const data = new FormData(made);
    const read = (/** @type {string} */ name) => String(data.get(name) ?? "");
    told.classList.remove("bad");
    for (const each of made.querySelectorAll(".wrong")) each.remove();
    for (const each of made.querySelectorAll("[aria-invalid]")) each.removeAttribute("aria-invalid");
    made.setAttribute("aria-busy", "true");
    try {
      put(told, (await submit(read, data)) ?? text("saved"));
      if (again) made.reset();
    } catch (error) {
      told.classList.add("bad");
      put(told, atField(made, error) ? text("seeField") : said(error));
    } finally {
      made.removeAttribute("aria-busy");
    }
  });
  return made;
}

/** Whether the field that the error names is here; then the error stands there. @param {HTMLFormElement} made @param {any} error */
function atField(made, error) {
  const name = /^\w+/.exec(error?.data?.path ?? "")?.[0];
  const control = name && /** @type {HTMLElement | null} */ (made.querySelector(`[name="${name}"]`));
  if (!control) return false;
  const id = `wrong-${crypto.randomUUID()}`;
  control.setAttribute("aria-invalid", "true");
  control.setAttribute("aria-describedby", id);
  // Beside its label, not in it: there it would be part of the field's name.
  (control.closest("label") ?? control).after(element("p.wrong", { id, role: "alert" }, said(error)));
  control.focus();
  return true;
}

/** @param {string} label @param {Record<string, any>} attributes */
export function field(label, attributes) {
  return element("label", {}, element("span", {}, label), element("input", { autocomplete: "off", ...attributes }));
}

/** @param {string} label @param {Record<string, any>} attributes @param {string} [value] */
export function area(label, attributes, value = "") {
  return element("label.wide", {}, element("span", {}, label), element("textarea", { rows: 4, dir: "auto", ...attributes }, value));
}

/** @param {string} label @param {string} name @param {[string, string][]} values value and what is shown for it @param {string} [chosen] */
export function choice(label, name, values, chosen) {
  return element("label", {}, element("span", {}, label), element("select", { name }, values.map(([value, shown]) => element("option", { value, selected: value === chosen }, shown))));
}

/** Several to tick. @param {string} legend @param {string} name @param {[string, string][]} values @param {string[]} ticked */
export function ticks(legend, name, values, ticked) {
  return element(
    "fieldset.ticks",
    {},
    element("legend", {}, legend),
    values.map(([value, shown]) => element("label.inline", {}, element("input", { type: "checkbox", name, value, checked: ticked.includes(value) }), shown)),
  );
}
