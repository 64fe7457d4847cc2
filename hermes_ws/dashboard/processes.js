// What runs in the background of a session or a profile: live output, a line to its input, its end.

import { coloured } from "./ansi.js";
import { element, put, sync } from "./dom.js";
import { Soon } from "./soon.js";
import { text } from "./texts.js";

/** Milliseconds between two looks while somebody looks on. */
const LOOK_EVERY = 1000;

/** Characters of one output that are shown, from its end. */
const SHOWN = 65_536;

/** How near to the end, in pixels, counts as "reading along". */
const NEAR = 40;

/**
 * @typedef {import("../../clients/typescript/src/contract.ts").ProcessRow} Row
 * @typedef {{row: Row, made: HTMLElement, line: HTMLElement, output: HTMLElement, form: HTMLElement, text: string, have: number}} Shown
 */

export class Processes {
  /**
   * @param {import("./gateway.js").Gateway} gateway
   * @param {{profile: string, session_id?: string}} whose of one session, or of all of a profile
   * @param {boolean} [unfolded]
   */
  constructor(gateway, whose, unfolded = false) {
    this.gateway = gateway;
    this.whose = whose;
    /** @type {Map<string, Shown>} */
    this.shown = new Map();
    this.count = element("span.count");
    this.list = element("ul", { role: "list", "aria-label": text("processes") });
    this.said = element("p.problem", { role: "alert" });
    this.root = element("details.processes", { hidden: true, open: unfolded }, element("summary", {}, text("processes"), " ", this.count), this.said, this.list);
    this.root.addEventListener("toggle", () => this.look());
    this.soon = new Soon(() => this.look(), 150);
    this.timer = setInterval(() => document.hidden || (this.root.isConnected && this.root.hasAttribute("open") && this.look()), LOOK_EVERY);
  }

  end() {
    clearInterval(this.timer);
    this.soon.cancel();
  }

  lookSoon() {
    this.soon.ask();
  }

  async look() {
    try {
      const { processes } = await this.gateway.call("process.list", this.whose);
      this.draw(processes);
      await Promise.all([...this.shown.values()].map((shown) => this.follow(shown)));
    } catch {
      // Not connected: the page looks again when it is.
    }
  }

  /** @param {Row[]} rows */
  draw(rows) {
    const running = rows.filter((row) => row.running).length;
    this.root.toggleAttribute("hidden", rows.length === 0);
    put(this.count, running ? `${running} / ${rows.length}` : String(rows.length));
    const known = new Set(rows.map((row) => row.process_id));
    for (const id of this.shown.keys()) if (!known.has(id)) this.shown.delete(id);
    // The newest first: it is the one that was just started.
    sync(this.list, [...rows].reverse().map((row) => this.row(row)));
  }

  /** @param {Row} row */
  row(row) {
    const shown = this.shown.get(row.process_id) ?? this.fresh(row);
    shown.row = row;
    const state = row.running ? "running" : row.exit_code === 0 ? "done" : "failed";
    const how = row.running ? text("running") : row.signal ? `${text("bySignal")} ${row.signal}` : `${text("exitCode")} ${row.exit_code ?? "?"}`;
    put(
      shown.line,
      element(`span.dot.${state}`, { role: "img", "aria-label": text(state) }),
      element("code.name", { dir: "ltr", title: row.command }, row.command.split("\n", 1)[0]),
      element("span.soft", {}, how),
    );
    shown.form.toggleAttribute("hidden", !row.running);
    return shown.made;
  }

  /** @param {Row} row @returns {Shown} */
  fresh(row) {
    const { process_id } = row;
    const line = element("summary", {});
    const output = element("pre.output", { dir: "ltr", tabindex: "0", "aria-label": text("output") });
    const input = /** @type {HTMLInputElement} */ (
      element("input", { autocomplete: "off", spellcheck: "false", placeholder: text("processInput"), "aria-label": `${text("processInput")} ${row.command}` })
    );
    const { profile } = this.whose;
    const types = this.gateway.rights.has("terminal");
    const form = element(
      "form.process-acts",
      {
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          this.attempt(async () => {
            await this.gateway.call("process.input", { profile, process_id, text: `${input.value}\n` });
            input.value = "";
          });
        },
      },
      types && input,
      types && element("button", { type: "submit" }, text("send")),
      this.gateway.rights.has("control") &&
        element("button.stop", { type: "button", onclick: () => this.attempt(() => this.gateway.call("process.kill", { profile, process_id })) }, text("kill")),
    );
    const made = element("li", { "data-process": process_id }, element("details.card", {}, line, output, form));
    made.firstElementChild?.addEventListener("toggle", () => this.look());
    const shown = { row, made, line, output, form, text: "", have: 0 };
    this.shown.set(process_id, shown);
    return shown;
  }

  /** What was written since the last look, of those that are unfolded. @param {Shown} shown */
  async follow(shown) {
    const { row, output } = shown;
    const unfolded = shown.made.firstElementChild?.hasAttribute("open");
    const news = (row.characters ?? 0) - shown.have;
    if (!unfolded || news <= 0) return;
    const { offset, text: said } = await this.gateway.call("process.output", { profile: this.whose.profile, process_id: row.process_id, limit: Math.min(news, SHOWN) });
    // The server counts code points. It may have written on between the two looks, and two looks may overlap.
    const points = [...said];
    if (offset + points.length <= shown.have) return;
    shown.text = offset <= shown.have ? shown.text + points.slice(shown.have - offset).join("") : said;
    shown.text = shown.text.slice(-SHOWN);
    shown.have = offset + points.length;
    const along = output.scrollHeight - output.scrollTop - output.clientHeight < NEAR;
    put(output, coloured(shown.text));
    if (along) output.scrollTop = output.scrollHeight;
  }

  /** @param {() => Promise<unknown>} does */
  async attempt(does) {
    put(this.said);
    try {
      await does();
    } catch (error) {
      put(this.said, `${/** @type {Error} */ (error).message} ${/** @type {any} */ (error).hint ?? ""}`);
    }
    await this.look();
  }
}
