// What could be meant by the word that is being typed: commands behind a slash, paths behind an at sign.

import { element, put } from "./dom.js";
import { text } from "./texts.js";

/** Milliseconds without a key before the server is asked. */
const SETTLED = 120;

/** @typedef {{text: string, display: string, meta?: string, kind: string}} Item */

export class Completion {
  /**
   * @param {HTMLTextAreaElement} input
   * @param {(word: string, kind: "slash" | "path") => Promise<{items: Item[], replace_from?: number}>} ask
   */
  constructor(input, ask) {
    this.input = input;
    this.ask = ask;
    /** @type {Item[]} */
    this.items = [];
    this.chosen = -1;
    this.from = 0;
    this.timer = 0;
    this.list = element("ul.completions", { role: "listbox", id: `completions-${crypto.randomUUID()}`, hidden: true, "aria-label": text("completions") });
    input.setAttribute("aria-autocomplete", "list");
    input.setAttribute("aria-controls", this.list.id);
    input.addEventListener("input", () => this.look());
    input.addEventListener("blur", () => this.close());
  }

  /** The word at the caret that can be completed. */
  word() {
    const before = this.input.value.slice(0, this.input.selectionStart);
    const slash = /^\/\S*$/.exec(before);
    if (slash) return { kind: /** @type {const} */ ("slash"), word: before, from: 0 };
    const path = /(?:^|\s)(@\S*)$/.exec(before);
    if (path) return { kind: /** @type {const} */ ("path"), word: path[1], from: before.length - path[1].length };
    return null;
  }

  look() {
    clearTimeout(this.timer);
    const found = this.word();
    if (!found) return this.close();
    this.timer = setTimeout(async () => {
      const { value, selectionStart } = this.input;
      try {
        const told = await this.ask(found.word, found.kind);
        // The answer to a word that is not there any more is no answer.
        if (this.input.value !== value || this.input.selectionStart !== selectionStart) return;
        if (document.activeElement !== this.input) return;
        this.from = found.from + (told.replace_from ?? 0);
        this.show(told.items);
      } catch {
        this.close();
      }
    }, SETTLED);
  }

  /** @param {Item[]} items */
  show(items) {
    this.items = items;
    this.chosen = -1;
    this.draw();
  }

  close() {
    clearTimeout(this.timer);
    if (this.items.length) this.show([]);
  }

  draw() {
    this.list.toggleAttribute("hidden", this.items.length === 0);
    put(
      this.list,
      this.items.map((item, index) =>
        element(
          "li",
          {
            role: "option",
            id: `${this.list.id}-${index}`,
            "aria-selected": String(index === this.chosen),
            // Before the press takes the focus out of the input.
            onmousedown: (/** @type {Event} */ event) => {
              event.preventDefault();
              this.take(index);
            },
          },
          element("code", { dir: "ltr" }, item.display),
          item.meta && element("span.soft", {}, item.meta),
        ),
      ),
    );
    if (this.chosen < 0) this.input.removeAttribute("aria-activedescendant");
    else this.input.setAttribute("aria-activedescendant", `${this.list.id}-${this.chosen}`);
    this.list.children[this.chosen]?.scrollIntoView({ block: "nearest" });
  }

  /** Whether the key was meant for the list. @param {KeyboardEvent} event */
  key(event) {
    if (!this.items.length) return false;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.chosen = (this.chosen + step + this.items.length + (this.chosen < 0 && step < 0 ? 1 : 0)) % this.items.length;
      this.draw();
    } else if (event.key === "Escape") this.close();
    else if (event.key === "Tab" && !event.shiftKey) this.take(Math.max(this.chosen, 0));
    else if (event.key === "Enter" && this.chosen >= 0) this.take(this.chosen);
    else return false;
    event.preventDefault();
    return true;
  }

  /** @param {number} index */
  take(index) {
    const item = this.items[index];
    const rest = item.kind === "directory" ? "" : " ";
    this.input.setRangeText(item.text + rest, this.from, this.input.selectionStart, "end");
    this.close();
    this.input.focus();
    this.input.dispatchEvent(new Event("input"));
  }
}
