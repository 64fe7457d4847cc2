// Fields made from the shape of a value (JSON Schema): text, number, choice, list, map, and what is made of them.

import { element, put } from "./dom.js";
import { inUnits } from "./numbers.js";
import { text } from "./texts.js";

/** What the server shows in place of a secret; sent back, the secret stays. */
export const MASK = "«secret»";

/** Characters from which on a text gets several lines. */
const LONG = 10_000;

/**
 * @typedef {{type?: string, anyOf?: Shape[], enum?: any[], const?: any, items?: Shape, additionalProperties?: Shape | boolean,
 *            properties?: Record<string, Shape>, propertyNames?: Shape, description?: string, default?: any, required?: string[],
 *            minimum?: number, maximum?: number, exclusiveMinimum?: number, maxLength?: number, unit?: string, secret?: boolean}} Shape
 * @typedef {(string | number)[]} Path of a part of the value
 * @typedef {{root: HTMLElement, read: () => any, wrong: (path: Path, said: string) => void}} Editor
 *     `read` throws a `TypeError` for what is no value at all, after it has said so at the field
 */

/** A name as a person says it: `connect_s` is measured in seconds, which stands behind the field. @param {string} name */
export function spoken(name) {
  const last = name.split(".").at(-1) ?? name;
  const words = last.replace(/_(s|seconds|bytes)$/, "").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** @param {Shape} shape @returns {{shape: Shape, nullable: boolean}} */
function inner(shape) {
  if (!shape.anyOf) return { shape, nullable: false };
  const others = shape.anyOf.filter((each) => each.type !== "null");
  const { anyOf, ...beside } = shape;
  const whole = others.length === 1 ? { ...others[0], ...beside } : beside;
  return { shape: whole, nullable: others.length < anyOf.length };
}

/**
 * @param {Shape} given
 * @param {any} value
 * @param {string} name
 * @returns {Editor}
 */
export function editor(given, value, name) {
  const { shape, nullable } = inner(given);
  if (shape.enum) return choice(shape, value, name, nullable);
  if (shape.type === "boolean" && !nullable) return tick(shape, value, name);
  if (shape.type === "integer" || shape.type === "number") return number(shape, value, name);
  if (shape.type === "string") return words(shape, value, name, nullable);
  const compound = shape.type === "array" && shape.items ? list : shape.properties ? group : typeof shape.additionalProperties === "object" ? map : null;
  if (!compound) return raw(shape, value, name);
  return nullable ? optional(shape, value, name, compound) : compound(shape, value, name);
}

/**
 * A control with its label, what it is for, and room for what is wrong with it.
 * @param {string} name
 * @param {HTMLElement} control
 * @param {Shape} shape
 * @param {...(Node | string | false)} beside
 */
function labelled(name, control, shape, ...beside) {
  const id = `field-${crypto.randomUUID()}`;
  const wrong = element("p.wrong", { id: `${id}-wrong`, role: "alert" });
  const doc = shape.description && element("p.doc", { id: `${id}-doc`, dir: "auto" }, prose(shape.description));
  control.id = id;
  control.setAttribute("aria-describedby", `${doc ? `${id}-doc ` : ""}${id}-wrong`);
  const root = element("div.line", {}, element("label", { for: id }, name), doc, element("div.control", {}, control, beside), wrong);
  const say = (/** @type {string} */ said) => {
    control.setAttribute("aria-invalid", "true");
    put(wrong, said);
  };
  return { root, say };
}

/** A description, with what stands between backticks as code. @param {string} said */
function prose(said) {
  return said.split("`").map((part, at) => (at % 2 ? element("code", {}, part) : part));
}

/** Nothing is wrong any more. @param {HTMLElement} root */
export function clear(root) {
  for (const each of root.querySelectorAll("[aria-invalid]")) each.removeAttribute("aria-invalid");
  for (const each of root.querySelectorAll(".wrong")) put(each);
}

/** @param {Shape} shape @param {any} value @param {string} name @param {boolean} nullable @returns {Editor} */
function choice(shape, value, name, nullable) {
  const offered = (shape.enum ?? []).map((each) => element("option", { value: JSON.stringify(each), selected: each === value }, String(each)));
  if (nullable) offered.unshift(element("option", { value: "null", selected: value === null || value === undefined }, text("notSet")));
  const control = /** @type {HTMLSelectElement} */ (element("select", {}, offered));
  const { root, say } = labelled(name, control, shape);
  return { root, read: () => JSON.parse(control.value), wrong: (_, said) => say(said) };
}

/** @param {Shape} shape @param {any} value @param {string} name @returns {Editor} */
function tick(shape, value, name) {
  const control = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox", checked: value === true }));
  const { root, say } = labelled(name, control, shape);
  root.classList.add("tick");
  return { root, read: () => control.checked, wrong: (_, said) => say(said) };
}

/** @param {Shape} shape @param {any} value @param {string} name @returns {Editor} */
function number(shape, value, name) {
  const { minimum, exclusiveMinimum, maximum, unit } = shape;
  const control = /** @type {HTMLInputElement} */ (
    element("input", { type: "number", value: value ?? "", min: minimum ?? exclusiveMinimum, max: maximum, step: shape.type === "integer" ? 1 : "any", placeholder: text("notSet") })
  );
  const measured = element("span.unit");
  const tell = () => put(measured, unit ? text(`unit.${unit}`) : "", unit && control.value ? ` ${inUnits(Number(control.value), unit)}` : "");
  control.addEventListener("input", tell);
  tell();
  const { root, say } = labelled(name, control, shape, measured);
  return {
    root,
    read: () => {
      if (control.validity.badInput) {
        say(text("noNumber"));
        throw new TypeError(text("noNumber"));
      }
      return control.value === "" ? null : Number(control.value);
    },
    wrong: (_, said) => say(said),
  };
}

/** @param {Shape} shape @param {any} value @param {string} name @param {boolean} nullable @returns {Editor} */
function words(shape, value, name, nullable) {
  let kept = shape.secret === true && value === MASK;
  const attributes = { dir: "auto", autocomplete: "off", spellcheck: "false", placeholder: kept ? text("keptSecret") : nullable ? text("notSet") : null };
  const shown = kept ? "" : (value ?? "");
  const several = (shape.maxLength ?? 0) >= LONG;
  const control = /** @type {HTMLInputElement} */ (several ? element("textarea", { ...attributes, rows: 2 }, shown) : element("input", { ...attributes, type: "text", value: shown }));
  const forget = element(
    "button.link",
    {
      type: "button",
      onclick: () => {
        kept = false;
        control.placeholder = text("notSet");
        forget.remove();
        control.dispatchEvent(new Event("input", { bubbles: true }));
      },
    },
    text("forget"),
  );
  const { root, say } = labelled(name, control, shape, kept && forget);
  return { root, read: () => (control.value !== "" ? control.value : kept ? MASK : nullable ? null : ""), wrong: (_, said) => say(said) };
}

/** What has no field of its own, as JSON. @param {Shape} shape @param {any} value @param {string} name @returns {Editor} */
function raw(shape, value, name) {
  const control = /** @type {HTMLTextAreaElement} */ (element("textarea", { rows: 2, spellcheck: "false" }, JSON.stringify(value ?? null)));
  const { root, say } = labelled(name, control, shape);
  return {
    root,
    read: () => {
      try {
        return JSON.parse(control.value || "null");
      } catch {
        say(text("noJson"));
        throw new TypeError(text("noJson"));
      }
    },
    wrong: (_, said) => say(said),
  };
}

/**
 * A frame around several fields.
 * @param {string} name
 * @param {Shape} shape
 * @param {...(Node | false)} content
 */
function framed(name, shape, ...content) {
  const id = `group-${crypto.randomUUID()}`;
  const wrong = element("p.wrong", { id, role: "alert" });
  const root = element("fieldset.group", { "aria-describedby": id }, element("legend", {}, name), shape.description && element("p.doc", { dir: "auto" }, prose(shape.description)), ...content, wrong);
  return { root, say: (/** @type {string} */ said) => put(wrong, said) };
}

/** What may be absent as a whole. @param {Shape} shape @param {any} value @param {string} name @param {(shape: Shape, value: any, name: string) => Editor} make @returns {Editor} */
function optional(shape, value, name, make) {
  const box = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox", checked: value !== null && value !== undefined }));
  const { description, ...rest } = shape;
  const made = make(rest, value ?? undefined, name);
  const show = () => made.root.toggleAttribute("hidden", !box.checked);
  box.addEventListener("change", show);
  show();
  const { root, say } = labelled(text("setIt", { name }), box, description ? { description } : {});
  root.classList.add("tick");
  return {
    root: element("div.optional", {}, root, made.root),
    read: () => (box.checked ? made.read() : null),
    wrong: (path, said) => (box.checked ? made.wrong(path, said) : say(said)),
  };
}

/** @param {Shape} shape @param {any} value @param {string} name @returns {Editor} */
function group(shape, value, name) {
  const fields = Object.entries(shape.properties ?? {}).map(([key, each]) => ({ key, each, made: editor(each, value?.[key] ?? each.default, spoken(key)) }));
  const { root, say } = framed(name, shape, ...fields.map(({ made }) => made.root));
  return {
    root,
    read: () => {
      /** @type {Record<string, any>} */
      const read = {};
      for (const { key, each, made } of fields) {
        const now = made.read();
        const usual = JSON.stringify(now) === JSON.stringify(each.default ?? null) || (each.default && typeof now === "object" && now && !Object.keys(now).length);
        // What is as it would be anyway is not written down.
        if (!usual) read[key] = now;
      }
      return read;
    },
    wrong: ([first, ...rest], said) => {
      const field = fields.find(({ key }) => key === first);
      if (field) field.made.wrong(rest, said);
      else say(first === undefined ? said : `${first}: ${said}`);
    },
  };
}

/** @param {Shape} shape @param {any} value @param {string} name @returns {Editor} */
function list(shape, value, name) {
  const items = /** @type {Shape} */ (shape.items);
  /** @type {{made: Editor, row: HTMLElement}[]} */
  const rows = [];
  const place = element("div.rows");
  /** @param {any} each */
  const add = (each) => {
    const title = `${name} ${rows.length + 1}`;
    const made = editor(items, each, title);
    const entry = { made, row: element("div.entry", {}, made.root, remove(title, () => take(entry))) };
    rows.push(entry);
    place.append(entry.row);
    return entry;
  };
  /** @param {{made: Editor, row: HTMLElement}} entry */
  const take = (entry) => {
    rows.splice(rows.indexOf(entry), 1);
    entry.row.remove();
    changed(place);
    more.focus();
  };
  const more = element("button", { type: "button", onclick: () => first(add(items.default ?? undefined).row, place) }, text("addTo", { name }));
  for (const each of value ?? []) add(each);
  const { root, say } = framed(name, shape, place, more);
  return {
    root,
    read: () => rows.map(({ made }) => made.read()),
    wrong: ([at, ...rest], said) => {
      const entry = typeof at === "number" ? rows[at] : undefined;
      if (entry) entry.made.wrong(rest, said);
      else say(said);
    },
  };
}

/** @param {Shape} shape @param {any} value @param {string} name @returns {Editor} */
function map(shape, value, name) {
  const items = { .../** @type {Shape} */ (shape.additionalProperties), secret: shape.secret === true };
  /** @type {{key: Editor, made: Editor, row: HTMLElement}[]} */
  const rows = [];
  const place = element("div.rows");
  /** @param {string} called @param {any} each */
  const add = (called, each) => {
    const key = words({}, called, text("entryName"), false);
    const made = editor(items, each, text("entryValue"));
    const entry = { key, made, row: element("div.entry.named", {}, key.root, made.root, remove(called || name, () => take(entry))) };
    rows.push(entry);
    place.append(entry.row);
    return entry;
  };
  /** @param {{key: Editor, made: Editor, row: HTMLElement}} entry */
  const take = (entry) => {
    rows.splice(rows.indexOf(entry), 1);
    entry.row.remove();
    changed(place);
    more.focus();
  };
  const more = element("button", { type: "button", onclick: () => first(add("", undefined).row, place) }, text("addTo", { name }));
  for (const [called, each] of Object.entries(value ?? {})) add(called, each);
  const { root, say } = framed(name, shape, place, more);
  return {
    root,
    read: () => {
      /** @type {Record<string, any>} */
      const read = {};
      for (const { key, made } of rows) {
        const called = key.read();
        if (called === "" || called in read) {
          const said = text(called === "" ? "noName" : "twice");
          key.wrong([], said);
          throw new TypeError(said);
        }
        read[called] = made.read();
      }
      return read;
    },
    wrong: (path, said) => {
      // A name may have dots of its own.
      const whole = path.join(".");
      const entry = rows.find(({ key }) => whole === key.read() || whole.startsWith(`${key.read()}.`));
      if (!entry) return say(said);
      const rest = path.slice(String(entry.key.read()).split(".").length);
      // Where the server says `[key]`, it is the name that does not do.
      if (rest[0] === "[key]") entry.key.wrong([], said);
      else entry.made.wrong(rest, said);
    },
  };
}

/** @param {string} name @param {() => void} act */
function remove(name, act) {
  return element("button.remove", { type: "button", "aria-label": text("removeIt", { name }), title: text("removeIt", { name }), onclick: act }, "×");
}

/** Whoever watches the form is told that it changed. @param {HTMLElement} place */
function changed(place) {
  place.dispatchEvent(new Event("input", { bubbles: true }));
}

/** A new entry is where one goes on. @param {HTMLElement} row @param {HTMLElement} place */
function first(row, place) {
  changed(place);
  /** @type {HTMLElement | null} */ (row.querySelector("input, select, textarea"))?.focus();
}
