// Who works for a session, as a tree: how far they are, what they say, and a word with them.

import { element, put } from "./dom.js";
import { Soon } from "./soon.js";
import { text } from "./texts.js";

/** Milliseconds between two looks at the tail of a subagent that is looked at. */
const TAIL_EVERY = 1500;

/** @typedef {import("../../clients/typescript/src/contract.ts").SubagentRow} Row */

export class Subagents {
  /**
   * @param {import("./gateway.js").Gateway} gateway
   * @param {import("./conversation.js").Conversation} conversation
   * @param {(threadId: string) => void} open
   */
  constructor(gateway, conversation, open) {
    this.gateway = gateway;
    this.conversation = conversation;
    this.open = open;
    /** @type {Row[]} */
    this.rows = [];
    this.soon = new Soon(() => this.look(), 150);
    this.tailing = "";
    this.tail = element("pre.tail", { dir: "auto", tabindex: "0", "aria-label": text("tail") });
    this.said = element("p.soft", { role: "status" });
    this.count = element("span.count");
    this.tree = element("ul", { role: "list" });
    this.root = element("details.subagents", { hidden: true }, element("summary", {}, text("subagents"), " ", this.count), this.tree, this.said);
    this.root.addEventListener("toggle", () => this.look());
    this.timer = setInterval(() => this.follow(), TAIL_EVERY);
  }

  end() {
    clearInterval(this.timer);
    this.soon.cancel();
  }

  lookSoon() {
    if (this.conversation.threadId !== "main") return;
    this.soon.ask();
  }

  get session() {
    const { sessionId: session_id, profile } = this.conversation;
    return { session_id, profile };
  }

  async look() {
    try {
      this.rows = (await this.gateway.call("subagent.list", this.session)).subagents;
      this.draw();
    } catch {
      // Not connected: the page looks again when it is.
    }
  }

  draw() {
    this.root.toggleAttribute("hidden", this.rows.length === 0);
    const running = this.rows.filter((row) => row.status === "running" || row.status === "queued").length;
    put(this.count, running ? `${running} / ${this.rows.length}` : String(this.rows.length));
    const known = new Set(this.rows.map((row) => row.subagent_id));
    put(this.tree, this.rows.filter((row) => !known.has(row.parent_id)).map((row) => this.branch(row)));
  }

  /** @param {Row} row @returns {HTMLElement} */
  branch(row) {
    const children = this.rows.filter((each) => each.parent_id === row.subagent_id);
    const running = row.status === "running";
    const act = (/** @type {string} */ label, /** @type {() => unknown} */ does) =>
      element("button.link", { type: "button", onclick: () => this.attempt(does) }, text(label));
    return element(
      "li",
      { "data-subagent": row.subagent_id },
      element(
        "div.subagent",
        {},
        element(`span.dot.${row.status}`, { role: "img", "aria-label": text(row.status) }),
        element("span.goal", { dir: "auto", title: row.goal }, row.goal.split("\n", 1)[0]),
        element("span.soft", {}, [row.agent, `${row.tool_count} ${text("calls")}`, row.last_tool].filter(Boolean).join(" · ")),
        act("open", () => this.open(row.thread_id)),
        running && act("tail", () => this.toggleTail(row.subagent_id)),
        row.accepting_steer && act("steer", () => this.steer(row)),
        running && act("stop", () => this.interrupt(row)),
      ),
      this.tailing === row.subagent_id && this.tail,
      children.length > 0 && element("ul", {}, children.map((each) => this.branch(each))),
    );
  }

  /** @param {() => unknown} does */
  async attempt(does) {
    put(this.said);
    try {
      await does();
    } catch (error) {
      put(this.said, /** @type {Error} */ (error).message);
    }
  }

  /** Show or hide the end of what one says. @param {string} id */
  async toggleTail(id) {
    this.tailing = this.tailing === id ? "" : id;
    put(this.tail);
    this.draw();
    await this.follow();
  }

  async follow() {
    if (!this.tailing || !this.gateway.up || document.hidden) return;
    const told = await this.gateway.call("subagent.tail", { ...this.session, subagent_id: this.tailing }).catch(() => null);
    if (told?.available) put(this.tail, told.text);
  }

  /** @param {Row} row */
  async steer(row) {
    const said = prompt(text("steerHow"));
    if (!said?.trim()) return;
    const told = await this.gateway.call("subagent.steer", { ...this.session, subagent_id: row.subagent_id, text: said });
    put(this.said, text(told.status === "queued" ? "steered" : "notSteered"));
  }

  /** @param {Row} row */
  async interrupt(row) {
    const { subagent_id, execution_generation } = row;
    await this.gateway.call("subagent.interrupt", { ...this.session, subagent_id, execution_generation });
    await this.look();
  }
}
