// Forms that say what became of them.

import { element, put } from "./dom.js";
import { text } from "./texts.js";

/**
 * A form that says what became of it.
 * @param {string} label of its button
 * @param {(Node | string)[]} fields
 * @param {(read: (name: string) => string) => Promise<string | void>} submit gives what to say when it went well
 */
export function form(label, fields, submit) {
  const said = element("output.said", { role: "status" });
  const made = /** @type {HTMLFormElement} */ (
    element("form.row", {}, fields, element("button", { type: "submit" }, label), said)
  );
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    const data = new FormData(made);
    const read = (/** @type {string} */ name) => String(data.get(name) ?? "");
    said.classList.remove("bad");
    try {
      put(said, (await submit(read)) || text("saved"));
    } catch (error) {
      said.classList.add("bad");
      put(said, `${/** @type {Error} */ (error).message} ${/** @type {any} */ (error).hint ?? ""}`);
    }
  });
  return made;
}

/** @param {string} label @param {Record<string, any>} attributes */
export function field(label, attributes) {
  return element("label", {}, label, element("input", { autocomplete: "off", ...attributes }));
}
