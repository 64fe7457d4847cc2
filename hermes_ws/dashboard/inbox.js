// Every question of every profile that waits for this person, answered in place; gone when it is answered anywhere.

import { element, hue, put } from "./dom.js";
import { text } from "./texts.js";

/**
 * @typedef {{id: string, kind: string, params: Record<string, any>, profile: string}} Question
 */

export class Inbox extends EventTarget {
  /** @param {(id: string, result: any) => Promise<any>} answer @param {(sessionId: string, profile: string) => void} show */
  constructor(answer, show) {
    super();
    this.answer = answer;
    this.show = show;
    /** @type {Map<string, Question>} */
    this.questions = new Map();
    this.list = element("ul.questions", { "aria-live": "polite", "aria-label": text("inbox") });
    this.draw();
  }

  /** @param {Question} question */
  add(question) {
    if (this.questions.has(question.id)) return;
    this.questions.set(question.id, question);
    this.draw();
  }

  /** @param {string} id */
  remove(id) {
    if (this.questions.delete(id)) this.draw();
  }

  clear() {
    this.questions.clear();
    this.draw();
  }

  draw() {
    const rows = [...this.questions.values()].map((question) => this.row(question));
    put(this.list, rows.length ? rows : element("li.empty", {}, text("inboxEmpty")));
    this.dispatchEvent(new CustomEvent("count", { detail: this.questions.size }));
  }

  /** @param {Question} question */
  row(question) {
    const { params } = question;
    const settle = async (/** @type {any} */ result) => {
      try {
        await this.answer(question.id, result);
        this.remove(question.id);
      } catch (error) {
        put(problem, String(/** @type {Error} */ (error).message));
      }
    };
    const problem = element("p.problem", { role: "alert" });
    return element(
      "li.question",
      { "data-id": question.id, hue: hue(question.profile) },
      element(
        "header",
        {},
        element("span.profile", {}, question.profile),
        element("button.link", { type: "button", onclick: () => this.show(params.session_id, question.profile) }, text("openSession")),
      ),
      ...(BODIES[question.kind] ?? other)(question, settle),
      problem,
    );
  }
}

/** @type {Record<string, (question: Question, settle: (result: any) => void) => HTMLElement[]>} */
const BODIES = {
  approval: ({ params }, settle) => [
    element("h3", {}, text("approve")),
    element("p", { dir: "auto" }, params.description),
    params.command && element("pre.command", { dir: "ltr" }, params.command),
    params.path && element("pre.command", { dir: "ltr" }, params.path),
    element("p.rule", {}, `${text("because")}: ${params.rule}`),
    element(
      "div.choices",
      {},
      params.choices.map((/** @type {string} */ choice) =>
        element(`button.choice.choice-${choice}`, { type: "button", onclick: () => settle({ choice }) }, text(choice)),
      ),
    ),
  ],
  clarify: ({ params }, settle) => {
    /** @type {Record<string, () => any>} */
    const read = {};
    const fields = params.questions.map((/** @type {any} */ item) => field(item, read));
    const form = element(
      "form",
      {},
      fields,
      element("div.choices", {}, element("button.choice.choice-once", { type: "submit" }, text("answer"))),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      settle({ answers: Object.fromEntries(Object.entries(read).map(([qid, value]) => [qid, value()])) });
    });
    return [form];
  },
  secret: (question, settle) => masked(question.params.prompt ?? question.params.name, settle),
  sudo: (question, settle) => masked(question.params.command, settle),
  continue: ({ params }, settle) => [
    element("p", {}, `${params.turns}`),
    element(
      "div.choices",
      {},
      element("button.choice.choice-once", { type: "button", onclick: () => settle({ continue: true }) }, text("answer")),
      element("button.choice.choice-deny", { type: "button", onclick: () => settle({ continue: false }) }, text("deny")),
    ),
  ],
};

/** @param {Question} question */
function other(question) {
  return [element("pre", {}, JSON.stringify(question.params, null, 2))];
}

/** @param {string} prompt @param {(result: any) => void} settle */
function masked(prompt, settle) {
  const input = /** @type {HTMLInputElement} */ (element("input", { type: "password", autocomplete: "off", "aria-label": prompt }));
  const form = element("form", {}, element("p", {}, prompt), input, element("div.choices", {}, element("button.choice.choice-once", { type: "submit" }, text("answer"))));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    settle({ value: input.value });
    input.value = "";
  });
  return [form];
}

/** @param {any} item @param {Record<string, () => any>} read */
function field(item, read) {
  if (!item.choices) {
    const input = /** @type {HTMLTextAreaElement} */ (element("textarea", { rows: "2", dir: "auto" }));
    read[item.qid] = () => input.value.trim() || null;
    return element("label.field", {}, item.question, input);
  }
  const kind = item.multi_select ? "checkbox" : "radio";
  const boxes = item.choices.map((/** @type {string} */ choice) => element("input", { type: kind, name: item.qid, value: choice }));
  read[item.qid] = () => {
    const picked = boxes.filter((/** @type {HTMLInputElement} */ box) => box.checked).map((/** @type {HTMLInputElement} */ box) => box.value);
    if (!picked.length) return null;
    return item.multi_select ? picked : picked[0];
  };
  return element(
    "fieldset.field",
    {},
    element("legend", {}, item.question),
    item.choices.map((/** @type {string} */ choice, /** @type {number} */ index) => element("label", {}, boxes[index], choice)),
  );
}
