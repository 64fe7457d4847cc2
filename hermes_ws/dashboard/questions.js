// What each kind of question looks like, and which answer it takes. Values that are typed in go out and are kept nowhere.

import { element } from "./dom.js";
import { visible } from "./paint.js";
import { text } from "./texts.js";

/**
 * @typedef {{id: string, kind: string, params: Record<string, any>, profile: string}} Question
 * @typedef {(result: any) => void} Settle
 * @typedef {import("./dom.js").Child} Child
 */

/** @param {Question} question @param {Settle} settle @returns {Child[]} */
export function body(question, settle) {
  const make = BODIES[question.kind];
  return make ? make(question, settle) : unknown(question);
}

/** @type {Record<string, (question: Question, settle: Settle) => Child[]>} */
const BODIES = {
  approval: ({ params }, settle) => {
    const reason = /** @type {HTMLInputElement} */ (element("input", { maxlength: "2000", placeholder: text("denyWhy"), "aria-label": text("denyWhy") }));
    return [
      element("h3", {}, text("approve")),
      element("p", { dir: "auto" }, visible(params.description)),
      params.command && element("pre.command", { dir: "ltr" }, visible(params.command)),
      params.path && element("pre.command", { dir: "ltr" }, visible(params.path)),
      element("p.rule", {}, `${text("because")}: ${params.rule}`),
      element(
        "div.choices",
        {},
        params.choices.map((/** @type {string} */ choice) =>
          element(`button.choice.choice-${choice}`, { type: "button", onclick: () => settle({ choice, ...(choice === "deny" && reason.value.trim() ? { reason: reason.value.trim() } : {}) }) }, text(choice)),
        ),
      ),
      params.choices.includes("deny") && reason,
    ];
  },
  clarify: ({ params }, settle) => {
    /** @type {Record<string, () => any>} */
    const read = {};
    const fields = params.questions.map((/** @type {any} */ item) => clarified(item, read));
    const answers = (/** @type {boolean} */ given) => ({ answers: Object.fromEntries(Object.entries(read).map(([qid, value]) => [qid, given ? value() : null])) });
    return [element("h3", {}, text("clarify")), form(fields, text("answer"), () => settle(answers(true)), text("skip"), () => settle(answers(false)))];
  },
  sudo: ({ params }, settle) => [
    element("h3", {}, text("sudo")),
    element("pre.command", { dir: "ltr" }, visible(params.command)),
    ...value(text("password"), settle),
  ],
  secret: ({ params }, settle) => [
    element("h3", {}, text("secret"), " ", element("code", {}, params.name)),
    element("p", { dir: "auto" }, visible(params.prompt)),
    element("p.rule", {}, text("secretGoes")),
    ...value(params.name, settle),
  ],
  continue: ({ params }, settle) => [
    element("h3", {}, text("continue")),
    element("p", {}, `${text("turnsUsed")} ${params.turns}.`),
    element(
      "div.choices",
      {},
      element("button.choice.choice-once", { type: "button", onclick: () => settle({ continue: true }) }, text("continueYes")),
      element("button.choice.choice-deny", { type: "button", onclick: () => settle({ continue: false }) }, text("continueNo")),
    ),
  ],
  "vault.unlock_prompt": ({ params }, settle) => [
    element("h3", {}, text("vaultUnlock")),
    element("p", { dir: "auto" }, visible(params.display_name)),
    params.problem && element("p.problem", { role: "alert", dir: "auto" }, visible(params.problem)),
    ...value(text("vaultPassword"), settle, text("unlock")),
  ],
  "vault.save_login": ({ params }, settle) => {
    const name = masked(text("userName"), "text");
    const password = masked(text("password"), "password");
    return [
      element("h3", {}, text("vaultLogin")),
      element("p", {}, element("code", { dir: "ltr" }, visible(params.origin))),
      element("p.rule", {}, text("vaultGoes")),
      form([name.field, password.field], text("save"), () => settle({ value: JSON.stringify({ username: name.take(), password: password.take() }) }), text("notNow"), () => settle({ value: null })),
    ];
  },
  "vault.code": ({ params }, settle) => {
    const code = masked(text("oneTimeCode"), "text", { inputmode: "numeric", autocomplete: "one-time-code" });
    return [
      element("h3", {}, text("vaultCode"), params.site && " ", params.site && element("code", { dir: "ltr" }, visible(params.site))),
      params.hint && element("p", { dir: "auto" }, visible(params.hint)),
      form([code.field], text("answer"), () => settle({ value: code.take() }), text("notNow"), () => settle({ value: null })),
    ];
  },
  connection: ({ params }, settle) => {
    const targets = params.targets.map(target);
    const answer = () => {
      /** @type {Record<string, string>} */
      const values = {};
      for (const each of targets) if (each.wanted()) for (const [name, take] of each.values) values[name] = take();
      settle({ targets: Object.fromEntries(targets.map((/** @type {Target} */ each) => [each.name, each.wanted() ? "connected" : "skipped"])), values });
    };
    const none = () => settle({ targets: Object.fromEntries(targets.map((/** @type {Target} */ each) => [each.name, "skipped"])) });
    return [
      element("h3", {}, text("connection")),
      element("p.rule", {}, text("connectionGoesOn")),
      form(targets.map((/** @type {Target} */ each) => each.made), text("connect"), answer, text("skip"), none),
    ];
  },
  client_tool: ({ params }, settle) => [
    element("h3", {}, text("clientTool"), " ", element("code", {}, params.tool)),
    element("p", {}, text("clientToolHow")),
    element("dl.arguments", {}, Object.entries(params.arguments).flatMap(([name, given]) => [element("dt", {}, name), element("dd", { dir: "auto" }, visible(typeof given === "string" ? given : JSON.stringify(given)))])),
    element("div.choices", {}, element("button.choice.choice-deny", { type: "button", onclick: () => settle({ output: text("clientToolNot"), is_error: true }) }, text("clientToolRefuse"))),
  ],
};

/** A question of a newer server is shown as it is, and left to a client that knows it. @param {Question} question @returns {Child[]} */
function unknown(question) {
  return [
    element("h3", {}, text("unknownQuestion"), " ", element("code", {}, question.kind)),
    element("p", {}, text("unknownQuestionHow")),
    element("pre", {}, visible(JSON.stringify(question.params, null, 2))),
  ];
}

/**
 * @param {(Node | string)[]} fields
 * @param {string} yes @param {() => void} submit
 * @param {string} no @param {() => void} refuse
 */
function form(fields, yes, submit, no, refuse) {
  return element(
    "form",
    {
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        submit();
      },
    },
    fields,
    element(
      "div.choices",
      {},
      element("button.choice.choice-once", { type: "submit" }, yes),
      element("button.choice", { type: "button", onclick: refuse }, no),
    ),
  );
}

/** One value that is typed in unseen. @param {string} label @param {Settle} settle @param {string} [yes] @returns {Child[]} */
function value(label, settle, yes = text("answer")) {
  const typed = masked(label, "password");
  return [form([typed.field], yes, () => settle({ value: typed.take() }), text("notNow"), () => settle({ value: null }))];
}

/** @param {string} label @param {string} type @param {Record<string, string>} [more] */
function masked(label, type, more = {}) {
  const input = /** @type {HTMLInputElement} */ (element("input", { type, autocomplete: "off", spellcheck: "false", required: type === "password", ...more }));
  return {
    field: element("label.field", {}, label, input),
    /** What was typed, which is gone from the page with that. */
    take: () => {
      const typed = input.value;
      input.value = "";
      return typed;
    },
    input,
  };
}

/**
 * @typedef {{name: string, made: HTMLElement, wanted: () => boolean, values: [string, () => string][]}} Target
 * @param {any} asked
 * @returns {Target}
 */
function target(asked) {
  const wanted = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox", checked: true }));
  const fields = asked.required_env.map((/** @type {any} */ each) => ({ name: each.name, prompt: each.prompt, ...masked(each.name, "password") }));
  wanted.addEventListener("change", () => {
    for (const each of fields) each.input.disabled = !wanted.checked;
  });
  return {
    name: asked.name,
    wanted: () => wanted.checked,
    values: fields.map((/** @type {any} */ each) => [each.name, each.take]),
    made: element(
      "fieldset.target",
      {},
      element("legend", {}, element("label", {}, wanted, ` ${text(`action.${asked.action}`)}: `, element("strong", { dir: "auto" }, visible(asked.name)), ` (${text(`kind.${asked.kind}`)})`)),
      asked.detail && element("p", { dir: "auto" }, visible(asked.detail)),
      fields.map((/** @type {any} */ each) => [each.field, each.prompt && element("p.rule", { dir: "auto" }, visible(each.prompt))]).flat(),
    ),
  };
}

/** @param {any} item @param {Record<string, () => any>} read */
function clarified(item, read) {
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
