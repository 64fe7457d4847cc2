// Every question of every profile that waits for this person, answered in place; gone when it is answered anywhere.

import { clock, element, hue, put, sync } from "./dom.js";
import { span } from "./numbers.js";
import { body } from "./questions.js";
import { text } from "./texts.js";

/** Seconds before the end from which on they are counted one by one. */
const SOON = 60;

/** What happens when a question is not answered in time, where it is not that the agent is told so. */
const THEN = new Set(["approval", "clarify", "continue", "connection"]);

/** @typedef {import("./questions.js").Question & {title?: string, deadline?: number | null}} Question */

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
    /** Where it is told how much time is left. @type {Map<string, HTMLElement>} */
    this.clocks = new Map();
    /** Those that were not answered in time, until that was seen. @type {Set<string>} */
    this.expired = new Set();
    setInterval(() => this.tick(), 1000);
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

  /** Nobody answered in time: that is told where the question stood. @param {string} id */
  expire(id) {
    const question = this.questions.get(id);
    const row = this.rows.get(id);
    if (!question || !row) return;
    this.questions.delete(id);
    this.clocks.delete(id);
    this.expired.add(id);
    row.classList.add("expired");
    const seen = () => {
      this.expired.delete(id);
      this.draw();
    };
    const header = row.querySelector("header") ?? "";
    put(row, header, element("p", {}, text("expiredQuestion"), " ", text(then(question.kind))), element("button.link", { type: "button", onclick: seen }, text("dismiss")));
    this.draw();
  }

  tick() {
    for (const [id, place] of this.clocks) {
      const said = remains(this.questions.get(id)?.deadline ?? 0);
      if (place.textContent !== said) put(place, said);
    }
  }

  /** @param {Question} question */
  until({ id, kind, deadline }) {
    if (!deadline) return null;
    const left = element("span", { role: "timer" }, remains(deadline));
    this.clocks.set(id, left);
    return element("p.deadline", { "aria-live": "off" }, `${text("answerUntil")} ${clock(deadline)} (`, left, `). ${text(then(kind))}`);
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
    for (const id of [...this.rows.keys()]) {
      if (this.questions.has(id) || this.expired.has(id)) continue;
      this.rows.delete(id);
      this.clocks.delete(id);
    }
    const rows = [...this.questions.values()].map((question) => this.row(question));
    for (const id of this.expired) rows.push(/** @type {HTMLElement} */ (this.rows.get(id)));
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
      this.until(question),
      problem,
    );
  }
}

/** @param {string} kind */
function then(kind) {
  return `then.${THEN.has(kind) ? kind : "other"}`;
}

/** @param {number} deadline in seconds since 1970 */
function remains(deadline) {
  const left = Math.max(0, deadline - Date.now() / 1000);
  return span(left < SOON ? left : Math.ceil(left / 60) * 60);
}
