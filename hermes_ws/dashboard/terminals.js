// The terminals of a session, below its conversation: opened here or elsewhere, shared by all who look.

import { element, put } from "./dom.js";
import { text } from "./texts.js";

/** Milliseconds between two looks at which terminals there are, and who looks at them; all else is told. */
const LOOK_EVERY = 5000;

/** Milliseconds after which a change of size is taken for the last one. */
const SETTLED = 120;

/** Rows and columns of a terminal before there is a place for it. */
const FIRST = Object.freeze({ rows: 24, columns: 80 });

/** @typedef {import("./terminal.js").Terminal} Terminal */
/** @typedef {import("../../clients/typescript/src/contract.ts").TerminalRow} Row */

export class Terminals {
  /**
   * @param {import("./gateway.js").Gateway} gateway
   * @param {import("./conversation.js").Conversation} conversation
   * @param {() => void} leave where the keyboard goes from here
   */
  constructor(gateway, conversation, leave) {
    this.gateway = gateway;
    this.conversation = conversation;
    this.leave = leave;
    /** Those that are looked at here, by their ids. @type {Map<string, Terminal>} */
    this.shown = new Map();
    /** @type {Row[]} */
    this.rows = [];
    this.current = "";
    this.button = element("button.link.toggle", { type: "button", hidden: true, "aria-expanded": "false", onclick: () => this.toggle() }, text("terminal"));
    this.tabs = element("div.terminal-tabs", { role: "tablist", "aria-label": text("terminals") });
    this.place = element("div.terminal-place", { role: "tabpanel" });
    this.said = element("p.problem", { role: "alert" });
    this.root = element(
      "section.terminals",
      { hidden: true, "aria-label": text("terminals") },
      element(
        "header",
        {},
        this.tabs,
        element("button.link", { type: "button", onclick: () => this.attempt(() => this.open()) }, text("newTerminal")),
        element("span.soft.hint", { "aria-hidden": "true" }, text("terminalLeave")),
        element("button.close", { type: "button", "aria-label": text("hideTerminals"), onclick: () => this.toggle() }, "⌄"),
      ),
      this.said,
      this.place,
    );
    this.timer = setInterval(() => document.hidden || this.root.hidden || this.look().catch(() => undefined), LOOK_EVERY);
    let settling = 0;
    this.size = new ResizeObserver(() => {
      clearTimeout(settling);
      // Who only looks does not change the size for the one who works in it.
      settling = setTimeout(() => this.terminal?.fit(this.works()), SETTLED);
    });
    this.size.observe(this.place);
    this.place.addEventListener("focusin", () => this.terminal?.fit(true));
  }

  get terminal() {
    return this.shown.get(this.current);
  }

  /** Whether somebody works in it here. */
  works() {
    return document.hasFocus() && this.place.contains(document.activeElement);
  }

  get session() {
    const { sessionId: session_id, profile } = this.conversation;
    return { session_id, profile };
  }

  /** Only where that is granted. */
  offer() {
    this.button.toggleAttribute("hidden", !this.gateway.rights.has("terminal"));
  }

  end() {
    clearInterval(this.timer);
    this.size.disconnect();
    for (const each of this.shown.values()) each.end();
  }

  async toggle() {
    const opens = this.root.hidden;
    this.root.hidden = !opens;
    this.button.setAttribute("aria-expanded", String(opens));
    if (!opens) return this.leave();
    // At once: who opens it types into it.
    this.terminal?.focus();
    await this.attempt(async () => {
      await this.look();
      if (this.rows.length) await this.select(this.current || this.rows[0].terminal_id);
      else await this.open();
    });
  }

  /** @param {() => Promise<unknown>} does */
  async attempt(does) {
    put(this.said);
    try {
      await does();
    } catch (error) {
      put(this.said, `${/** @type {Error} */ (error).message} ${/** @type {any} */ (error).hint ?? ""}`);
    }
  }

  async look() {
    const { terminals } = await this.gateway.call("terminal.list", { profile: this.conversation.profile });
    this.rows = terminals.filter((row) => row.session_id === this.conversation.sessionId);
    const there = new Set(this.rows.map((row) => row.terminal_id));
    for (const [id, terminal] of this.shown) if (!there.has(id)) terminal.over(text("terminalGone"));
    this.draw();
  }

  /** After a lost connection: look again at those that are still there. */
  async resume() {
    this.offer();
    if (!this.gateway.rights.has("terminal")) return;
    if (!this.shown.size && this.root.hidden) return;
    await this.look();
    for (const row of this.rows) {
      const terminal = this.shown.get(row.terminal_id);
      terminal?.sized(row.rows, row.columns);
      await terminal?.attach();
    }
  }

  async open() {
    const room = this.terminal?.screen.fits() ?? FIRST;
    const { terminal_id } = await this.gateway.call("terminal.open", { ...this.session, ...room });
    const terminal = await this.make({ terminal_id, ...room });
    terminal.answers = true;
    this.choose(terminal_id);
    await this.look();
  }

  /** @param {string} id */
  async select(id) {
    const row = this.rows.find((each) => each.terminal_id === id);
    if (!this.shown.has(id) && row) await (await this.make(row)).attach();
    this.choose(id);
  }

  /** @param {string} id */
  choose(id) {
    this.current = id;
    this.draw();
    this.terminal?.screen.soon();
    this.terminal?.focus();
    this.terminal?.fit(this.works());
  }

  /** @param {{terminal_id: string, rows: number, columns: number}} row @returns {Promise<Terminal>} */
  async make(row) {
    // The emulator is large, and most people open no terminal: it is loaded when it is needed.
    const { Terminal } = await import("./terminal.js");
    const terminal = new Terminal(this.gateway, this.conversation.profile, row, { leave: this.leave, problem: (said) => put(this.said, said) });
    this.shown.set(row.terminal_id, terminal);
    for (const event of this.early.splice(0)) this.take(event);
    return terminal;
  }

  /** What comes for a terminal before its screen is made. @type {any[]} */
  early = [];

  /** @param {any} event */
  take(event) {
    const terminal = this.shown.get(event.payload.terminal_id);
    if (!terminal) return void this.early.push(event);
    if (event.type === "terminal.output") terminal.show(event.payload);
    else if (event.type === "terminal.resized") terminal.sized(event.payload.rows, event.payload.columns);
    else {
      const { exit_code, signal } = event.payload;
      terminal.over(`[${signal ? `${text("bySignal")} ${signal}` : `${text("exitCode")} ${exit_code ?? "?"}`}]`);
      this.rows = this.rows.filter((row) => row.terminal_id !== terminal.id);
      this.draw();
    }
  }

  /** @param {string} id */
  async close(id) {
    const terminal = this.shown.get(id);
    const runs = this.rows.some((row) => row.terminal_id === id);
    if (runs && !confirm(text("closeTerminalSure"))) return;
    if (runs) await this.gateway.call("terminal.close", { terminal_id: id, profile: this.conversation.profile });
    terminal?.end();
    this.shown.delete(id);
    this.rows = this.rows.filter((row) => row.terminal_id !== id);
    const [next] = this.ids();
    if (next) await this.select(next);
    else {
      this.current = "";
      this.draw();
      if (!this.root.hidden) this.toggle();
    }
  }

  /** Those that are open, and those that ended here and can still be read. */
  ids() {
    return [...new Set([...this.rows.map((row) => row.terminal_id), ...this.shown.keys()])];
  }

  draw() {
    const ids = this.ids();
    put(this.button, text("terminal"), this.rows.length > 0 && ` (${this.rows.length})`);
    const tabs = ids.map((id, index) => {
      const row = this.rows.find((each) => each.terminal_id === id);
      const name = `${index + 1}: ${row ? row.command[0]?.split("/").at(-1) : text("ended")}`;
      return element(
        "span.terminal-tab",
        {},
        element(
          "button",
          { type: "button", role: "tab", "aria-selected": String(id === this.current), title: row?.cwd ?? "", onclick: () => this.attempt(() => this.select(id)) },
          name,
          row && row.viewers > 1 && element("span.soft", {}, ` · ${row.viewers} ${text("viewers")}`),
        ),
        element("button.close", { type: "button", "aria-label": `${text("closeTerminal")} ${name}`, onclick: () => this.attempt(() => this.close(id)) }, "×"),
      );
    });
    const said = JSON.stringify([ids, this.current, this.rows]);
    if (said !== this.drawn) put(this.tabs, tabs);
    this.drawn = said;
    if (this.terminal && this.place.firstChild !== this.terminal.root) put(this.place, this.terminal.root);
    else if (!this.terminal) put(this.place);
  }

  drawn = "";
}
