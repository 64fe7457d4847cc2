// Every question of every profile that waits for this person, answered in place; gone when it is answered anywhere.

import { element, hue, put, sync } from "./dom.js";
import { body } from "./questions.js";
import { text } from "./texts.js";

/** @typedef {import("./questions.js").Question & {title?: string}} Question */

export class Inbox extends EventTarget {
  /** @param {(id: string, result: any) => Promise<any>} answer @param {(sessionId: string, profile: string) => void} show */
  constructor(answer, show) {
    super();
    this.answer = answer;
    this.show = show;
    /** @type {Map<string, Question>} */
    this.questions = new Map();
    /** Rows are made once: what is half typed into one is not lost when another comes or goes. @type {Map<string, HTMLElement>} */
    this.rows = new Map();
    /** Those of an earlier connection that were not sent again yet. @type {Set<string>} */
    this.awaited = new Set();
    this.list = element("ul.questions", { "aria-live": "polite", "aria-label": text("inbox") });
    this.none = element("li.empty", {}, text("inboxEmpty"));
    this.draw();
  }

  /** @param {Question} question */
  add(question) {
    this.awaited.delete(question.id);
    if (this.questions.has(question.id)) return;
    this.questions.set(question.id, question);
    this.draw();
  }

  /** @param {string} id */
  remove(id) {
    if (!this.questions.delete(id)) return;
    this.draw();
  }

  /** The connection is a new one, and what is open is sent again on it. What stands here stays until that is known. */
  renew() {
    this.awaited = new Set(this.questions.keys());
  }

  /** All that is open was sent again: what was not is answered. */
  renewed() {
    for (const id of this.awaited) this.questions.delete(id);
    this.awaited.clear();
    this.draw();
  }

  draw() {
    for (const id of [...this.rows.keys()]) if (!this.questions.has(id)) this.rows.delete(id);
    const rows = [...this.questions.values()].map((question) => this.row(question));
    sync(this.list, rows.length ? rows : [this.none]);
    this.dispatchEvent(new CustomEvent("count", { detail: this.questions.size }));
  }

  /** @param {Question} question */
  row(question) {
    const known = this.rows.get(question.id);
    if (known) return known;
    const made = this.fresh(question);
    this.rows.set(question.id, made);
    return made;
  }

  /** @param {Question} question */
  fresh(question) {
    const { params } = question;
    const problem = element("p.problem", { role: "alert" });
    let sending = false;
    const settle = async (/** @type {any} */ result) => {
      if (sending) return;
      sending = true;
      put(problem);
      try {
        await this.answer(question.id, result);
        this.remove(question.id);
      } catch (error) {
        sending = false;
        put(problem, `${/** @type {Error} */ (error).message} ${/** @type {any} */ (error).hint ?? ""}`);
      }
    };
    const by = params.thread_id && params.thread_id !== "main" ? ` · ${text("subagent")}` : "";
    return element(
      "li.question",
      { "data-id": question.id, "data-kind": question.kind, hue: hue(question.profile) },
      element(
        "header",
        {},
        element("span.profile", {}, question.profile),
        element("span.from", { dir: "auto" }, (question.title ?? "") + by),
        element("button.link", { type: "button", onclick: () => this.show(params.session_id, question.profile) }, text("openSession")),
      ),
      ...body(question, settle),
      problem,
    );
  }
}
