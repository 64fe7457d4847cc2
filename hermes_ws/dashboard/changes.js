// The files that a session's agent has written, what is different in them since, and putting them back.

import { drawn, parsed } from "./diff.js";
import { clock, element, put } from "./dom.js";
import { Soon } from "./soon.js";
import { text } from "./texts.js";

/** @typedef {import("../../clients/typescript/src/contract.ts").CheckpointRow} Row */

export class Changes {
  /** @param {import("./gateway.js").Gateway} gateway @param {import("./conversation.js").Conversation} conversation */
  constructor(gateway, conversation) {
    this.gateway = gateway;
    this.conversation = conversation;
    /** @type {Row[]} */
    this.rows = [];
    this.soon = new Soon(() => this.look(), 150);
    this.seen = "";
    this.count = element("span.count");
    this.list = element("ul", { role: "list" });
    this.said = element("p.soft", { role: "status" });
    this.root = element("details.changes", { hidden: true }, element("summary", {}, text("changedFiles"), " ", this.count), this.list, this.said);
    this.root.addEventListener("toggle", () => this.look());
  }

  get thread() {
    const { sessionId: session_id, profile, threadId: thread_id } = this.conversation;
    return { session_id, profile, thread_id };
  }

  end() {
    this.soon.cancel();
  }

  lookSoon() {
    this.soon.ask();
  }

  async look() {
    try {
      this.rows = (await this.gateway.call("rollback.list", this.thread)).checkpoints;
      this.draw();
    } catch {
      // Not connected: the page looks again when it is.
    }
  }

  draw() {
    this.root.toggleAttribute("hidden", this.rows.length === 0);
    put(this.count, String(new Set(this.rows.flatMap((row) => row.files)).size));
    const seen = JSON.stringify(this.rows);
    if (seen === this.seen) return;
    this.seen = seen;
    put(this.list, this.rows.map((row) => this.row(row)));
  }

  /** A path as the session's directory sees it. @param {string} path */
  short(path) {
    const here = `${this.conversation.info.cwd ?? ""}/`;
    return path.startsWith(here) ? path.slice(here.length) : path;
  }

  /** @param {Row} row */
  row(row) {
    const body = element("div.difference");
    const name = row.files.map((file) => this.short(file)).join(", ");
    const details = element(
      "details.card",
      {},
      element("summary", {}, element("code.name", { dir: "ltr", title: row.files.join("\n") }, name), element("span.soft", {}, clock(row.made_at))),
      body,
    );
    details.addEventListener("toggle", () => details.hasAttribute("open") && this.attempt(() => this.show(row, body)));
    return element("li", { "data-checkpoint": row.hash }, details);
  }

  /** @param {Row} row @param {HTMLElement} body */
  async show(row, body) {
    const { diff, stat } = await this.gateway.call("rollback.diff", { ...this.thread, hash: row.hash });
    const files = parsed(diff);
    put(
      body,
      element("p.soft", {}, text("sinceThen")),
      files.map((file) => drawn(file.lines, this.short(file.name))),
      !files.length && element("p.soft", {}, stat || text("nothingDifferent")),
      this.gateway.rights.has("control") && element("button", { type: "button", onclick: () => this.attempt(() => this.restore(row, body)) }, text("putBack")),
    );
  }

  /** @param {Row} row @param {HTMLElement} body */
  async restore(row, body) {
    if (!confirm(text("putBackSure"))) return;
    const done = await this.gateway.call("rollback.restore", { ...this.thread, hash: row.hash });
    const left = [...done.skipped_user_edits, ...done.skipped_oversize, ...Object.keys(done.failed)];
    put(this.said, `${text("wasPutBack")}: ${done.restored_files.join(", ") || "–"}`, left.length > 0 && ` · ${text("wasLeft")}: ${left.join(", ")}`);
    await this.show(row, body);
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
}
