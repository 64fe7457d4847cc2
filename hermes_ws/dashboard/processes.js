// What runs in the background of a session or a profile: live output, a line to its input, its end.

import { coloured } from "./ansi.js";
import { element, put, sync } from "./dom.js";
import { Soon } from "./soon.js";
import { text } from "./texts.js";

/** Characters of one output that are shown, from its end. */
const SHOWN = 65_536;

/** How near to the end, in pixels, counts as "reading along". */
const NEAR = 40;

/**
 * @typedef {import("../../clients/typescript/src/contract.ts").ProcessRow} Row
 * @typedef {{row: Row, made: HTMLElement, line: HTMLElement, output: HTMLElement, form: HTMLElement, text: string, have: number,
 *            followed: boolean}} Shown `have` counts the code points that came
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
    /** Whether it is a panel by itself, which nobody ends. */
    this.alone = unfolded;
    /** @type {Map<string, Shown>} */
    this.shown = new Map();
    this.count = element("span.count");
    this.list = element("ul", { role: "list", "aria-label": text("processes") });
    this.said = element("p.problem", { role: "alert" });
    this.root = element("details.processes", { hidden: true, open: unfolded }, element("summary", {}, text("processes"), " ", this.count), this.said, this.list);
    this.root.addEventListener("toggle", () => this.look());
    this.soon = new Soon(() => this.look(), 150);
    /** Those whose output is to be drawn. @type {Set<Shown>} */
    this.stale = new Set();
    this.frame = 0;
    const until = (this.over = new AbortController());
    gateway.addEventListener("event", (event) => this.take(/** @type {CustomEvent} */ (event).detail), until);
    // A new connection follows nothing yet.
    gateway.addEventListener("ready", () => this.again(), until);
  }

  end() {
    this.over.abort();
    this.soon.cancel();
    for (const shown of this.shown.values()) this.follow(shown, false);
  }

  /** @param {any} event */
  take(event) {
    const { type, payload, profile, session_id } = event;
    if (this.alone && !this.root.isConnected) return this.end();
    const shown = payload.process_id && this.shown.get(payload.process_id);
    if (shown && type === "process.output") this.wrote(shown, payload);
    else if (shown && type === "process.ended") this.soon.ask();
    else if (type === "tool.complete" || type === "process.exited" || type === "sessions.changed") {
      if (this.whose.session_id ? session_id === this.whose.session_id : profile === this.whose.profile) this.soon.ask();
    }
  }

  again() {
    for (const shown of this.shown.values()) shown.followed = false;
    this.gateway.followed.clear();
    this.soon.ask();
  }

  async look() {
    try {
      const { processes } = await this.gateway.call("process.list", this.whose);
      this.draw(processes);
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
    this.follow(shown);
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
    const shown = { row, made, line, output, form, text: "", have: 0, followed: false };
    made.firstElementChild?.addEventListener("toggle", () => this.follow(shown));
    this.shown.set(process_id, shown);
    return shown;
  }

  /** What is unfolded is sent as it is written, from the last that is kept on. @param {Shown} shown @param {boolean} [wanted] */
  follow(shown, wanted = shown.made.firstElementChild?.hasAttribute("open") ?? false) {
    if (wanted === shown.followed) return;
    shown.followed = wanted;
    const { process_id } = shown.row;
    // Two panels may show it, on one connection.
    const { followed } = this.gateway;
    const others = followed.get(process_id) ?? 0;
    followed.set(process_id, Math.max(0, others + (wanted ? 1 : -1)));
    if (!wanted && others > 1) return;
    this.gateway.call("process.follow", { profile: this.whose.profile, process_id, follow: wanted }).catch(() => (shown.followed = false));
  }

  /** @param {Shown} shown @param {{offset: number, text: string}} piece */
  wrote(shown, { offset, text: said }) {
    // Offsets count code points, and what is sent again from the beginning was seen already.
    const points = [...said];
    if (offset + points.length <= shown.have) return;
    shown.text = offset <= shown.have ? shown.text + points.slice(shown.have - offset).join("") : said;
    shown.text = shown.text.slice(-SHOWN);
    shown.have = offset + points.length;
    this.stale.add(shown);
    this.frame ||= requestAnimationFrame(() => this.drawOutputs());
  }

  /** At most once a frame, however much is written. */
  drawOutputs() {
    this.frame = 0;
    for (const { output, text: all } of this.stale) {
      const along = output.scrollHeight - output.scrollTop - output.clientHeight < NEAR;
      put(output, coloured(all));
      if (along) output.scrollTop = output.scrollHeight;
    }
    this.stale.clear();
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
