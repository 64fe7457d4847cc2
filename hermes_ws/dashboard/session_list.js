// The sessions of all profiles in one list: grouped, filtered, searched, live. Only the rows in sight are in the page.

import { clock, element, hue, put, sync } from "./dom.js";
import { text } from "./texts.js";

const DAY = 86_400;

/** Height of a row and of a group's heading, in pixels: known, so that those out of sight need not be made. */
const ROW = 36;
const HEAD = 34;

/** Rows that are made above and below those in sight. */
const MARGIN = 12;

/** Rows before the end at which older ones are fetched. */
const NEAR = 30;

/** Milliseconds without a key before the words of messages are searched. */
const SETTLED = 250;

/** Shorter words are in every message. */
const SHORTEST = 3;

const FILTERS = /** @type {const} */ (["all", "running", "waiting", "lost", "archived"]);

/** Groups that have an order of their own; profiles come as their newest session does. */
const ORDER = ["pinned", "today", "yesterday", "earlier", "waiting", "running", "lost", "idle"];

/** Keys that lead from one row to another, and how far; null is as many as are in sight. */
const STEPS = Object.freeze(
  /** @type {Record<string, number | null>} */ ({ ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity, PageDown: null, PageUp: null }),
);

/** @typedef {(typeof FILTERS)[number]} Filter */
/** @typedef {import("../../clients/typescript/src/contract.ts").SessionRow} Row */
/** @typedef {import("../../clients/typescript/src/contract.ts").SearchHit & {profile: string}} Hit */
/** @typedef {{key: string, rows: Row[], top: number, section: HTMLElement, heading: HTMLElement, list: HTMLElement}} Group */

export class SessionList {
  /**
   * @param {{open: (row: {session_id: string, profile: string}, beside: boolean) => void, filtered: () => void,
   *          search: (query: string) => Promise<{titled: Row[], hits: Hit[]}>, older: () => void}} page
   */
  constructor(page) {
    this.page = page;
    /** @type {Row[]} */
    this.rows = [];
    /** @type {Hit[]} */
    this.hits = [];
    /** Those with the words in their titles, also where the list does not reach. @type {Row[]} */
    this.titled = [];
    this.more = false;
    /** Rows that there were when older ones were asked for: until there are others, they are not asked for again. */
    this.asked = -1;
    this.grouping = localStorage.getItem("hermes-ws.grouping") ?? "profile";
    this.filter = /** @type {Filter} */ ("all");
    this.query = "";
    this.searching = 0;
    this.current = new Set();
    /** The row that the Tab key leads to. */
    this.active = "";
    /** @type {Map<string, {said: string, made: HTMLElement}>} */
    this.made = new Map();
    /** @type {Group[]} */
    this.groups = [];
    const search = /** @type {HTMLInputElement} */ (
      element("input", { type: "search", placeholder: text("search"), "aria-label": text("search") })
    );
    search.addEventListener("input", () => {
      this.query = search.value.trim().toLowerCase();
      this.hits = [];
      this.titled = [];
      this.draw();
      this.lookInMessages();
    });
    search.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown" || !this.groups.length) return;
      event.preventDefault();
      this.go(this.groups[0].rows[0].session_id);
    });
    const filter = this.select("show", FILTERS, this.filter, (by) => {
      this.filter = /** @type {Filter} */ (by);
      page.filtered();
    });
    const grouping = this.select("groupBy", ["profile", "date", "state"], this.grouping, (by) => {
      this.grouping = by;
      localStorage.setItem("hermes-ws.grouping", by);
      this.made.clear();
      this.groups = [];
      this.draw();
    });
    this.body = element("div.groups");
    this.body.addEventListener("scroll", () => this.window(), { passive: true });
    this.body.addEventListener("keydown", (event) => this.walk(event));
    this.body.addEventListener("focusin", ({ target }) => {
      const id = /** @type {HTMLElement} */ (target).dataset.session;
      if (id && id !== this.active) this.activate(id);
    });
    new ResizeObserver(() => this.window()).observe(this.body);
    this.none = element("p.empty");
    this.older = element("button.link.older", { type: "button", onclick: () => page.older() }, text("olderSessions"));
    this.found = element("section.hits", {}, element("h2", {}, text("inMessages")), element("ul"));
    this.root = element("div.sessions", {}, element("div.tools", {}, search, filter, grouping), this.body);
    this.root.style.setProperty("--row", `${ROW}px`);
    this.root.style.setProperty("--head", `${HEAD}px`);
  }

  /** @param {string} label @param {readonly string[]} values @param {string} chosen @param {(value: string) => void} choose */
  select(label, values, chosen, choose) {
    const made = /** @type {HTMLSelectElement} */ (
      element("select", { "aria-label": text(label) }, values.map((by) => element("option", { value: by, selected: by === chosen }, text(`${label}.${by}`))))
    );
    made.addEventListener("change", () => choose(made.value));
    return made;
  }

  /** @param {Row[]} rows @param {boolean} more whether there are older ones */
  set(rows, more) {
    this.rows = rows;
    this.more = more;
    if (rows.length !== this.asked) this.asked = -1;
    this.draw();
  }

  lookInMessages() {
    clearTimeout(this.searching);
    if (this.query.length < SHORTEST) return;
    const asked = this.query;
    this.searching = setTimeout(async () => {
      const { titled, hits } = await this.page.search(asked);
      if (asked !== this.query) return;
      this.titled = titled;
      this.hits = hits;
      this.draw();
    }, SETTLED);
  }

  /** Those of the list that fit what is searched, and those that the server found beyond it. */
  fitting() {
    const found = this.rows.filter((row) => `${row.title ?? ""} ${row.preview} ${row.profile}`.toLowerCase().includes(this.query));
    const known = new Set(this.rows.map((row) => row.session_id));
    return [...found, ...this.titled.filter((row) => !known.has(row.session_id))];
  }

  draw() {
    const shown = this.query ? this.fitting() : this.rows;
    /** @type {Map<string, Row[]>} */
    const parted = new Map();
    for (const row of shown) {
      const key = this.key(row);
      const known = parted.get(key);
      if (known) known.push(row);
      else parted.set(key, [row]);
    }
    const keys = [...parted.keys()];
    if (this.grouping !== "profile") keys.sort((one, two) => ORDER.indexOf(one) - ORDER.indexOf(two));
    const known = new Map(this.groups.map((group) => [group.key, group]));
    let top = 0;
    this.groups = keys.map((key) => {
      const rows = parted.get(key) ?? [];
      const group = known.get(key) ?? this.group(key);
      group.rows = rows;
      group.top = top;
      group.list.style.setProperty("--rows", String(rows.length));
      top += HEAD + rows.length * ROW;
      return group;
    });
    if (!shown.some((row) => row.session_id === this.active)) this.active = this.groups[0]?.rows[0].session_id ?? "";
    if (this.made.size > 1000) this.made.clear();
    const seen = new Set(shown.map((row) => row.session_id));
    const hits = this.hits.filter((hit) => !seen.has(hit.session_id));
    put(/** @type {Element} */ (this.found.lastElementChild), hits.map((hit) => this.hit(hit)));
    const sections = this.groups.map((group) => group.section);
    if (hits.length) sections.push(this.found);
    if (!sections.length) {
      put(this.none, text(this.query || this.filter !== "all" ? "nothingFits" : "noSessions"));
      sections.push(this.none);
    }
    if (this.more) sections.push(this.older);
    sync(this.body, sections);
    this.window();
  }

  /** Make the rows that can be seen, and take away those that cannot: but never the one that has the focus. */
  window() {
    const first = this.body.scrollTop - MARGIN * ROW;
    const last = this.body.scrollTop + this.body.clientHeight + MARGIN * ROW;
    for (const group of this.groups) {
      const from = Math.max(0, Math.floor((first - group.top - HEAD) / ROW));
      const to = Math.min(group.rows.length, Math.ceil((last - group.top - HEAD) / ROW));
      const rows = [];
      for (let at = from; at < to; at++) rows.push(this.row(group, at));
      const kept = group.rows.findIndex((row) => row.session_id === this.active);
      if (kept >= 0 && kept < from) rows.unshift(this.row(group, kept));
      else if (kept >= 0 && kept >= Math.max(to, from)) rows.push(this.row(group, kept));
      sync(group.list, rows);
    }
    const end = this.groups.at(-1);
    if (this.more && !this.query && end && last > end.top + HEAD + (end.rows.length - NEAR) * ROW && this.asked !== this.rows.length) {
      this.asked = this.rows.length;
      this.page.older();
    }
  }

  /** @param {string} key @returns {Group} */
  group(key) {
    const heading = element("h2", {}, this.grouping === "profile" ? key : text(key));
    const list = element("ul");
    const section = element("section", this.grouping === "profile" ? { hue: hue(key) } : {}, heading, list);
    return { key, rows: [], top: 0, section, heading, list };
  }

  /** @param {Row} row */
  key(row) {
    if (this.grouping === "profile") return row.profile;
    if (this.grouping === "state") return row.state;
    if (row.pinned) return "pinned";
    const midnight = new Date().setHours(0, 0, 0, 0) / 1000;
    return row.updated_at >= midnight ? "today" : row.updated_at >= midnight - DAY ? "yesterday" : "earlier";
  }

  /** @param {Group} group @param {number} at */
  row(group, at) {
    const row = group.rows[at];
    const name = row.title ?? (row.preview || text("untitled"));
    const current = this.current.has(row.session_id);
    const said = JSON.stringify([name, row.state, row.pinned, row.updated_at, current]);
    const known = this.made.get(row.session_id);
    const made = known?.made ?? this.fresh(row);
    const button = /** @type {HTMLElement} */ (made.firstElementChild);
    button.tabIndex = row.session_id === this.active ? 0 : -1;
    made.style.setProperty("--at", String(at));
    made.setAttribute("aria-posinset", String(at + 1));
    made.setAttribute("aria-setsize", String(group.rows.length));
    if (known?.said === said) return made;
    if (current) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
    put(
      button,
      element(`span.dot.${row.state}`, { role: "img", "aria-label": text(row.state) }),
      element("span.name", { dir: "auto" }, name),
      row.pinned && element("span.pinned", { role: "img", "aria-label": text("pinned") }, "★"),
      element("span.meta", { dir: "auto" }, this.grouping === "profile" ? when(row.updated_at) : row.profile),
    );
    this.made.set(row.session_id, { said, made });
    return made;
  }

  /** @param {Row} row */
  fresh(row) {
    const open = (/** @type {MouseEvent} */ event) => this.page.open(row, event.ctrlKey || event.metaKey);
    return element(
      "li",
      { hue: hue(row.profile) },
      element("button.session", { type: "button", "data-session": row.session_id, title: text("beside"), onclick: open }),
    );
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    if (!(event.key in STEPS) || !(event.target instanceof HTMLElement) || !event.target.dataset.session) return;
    event.preventDefault();
    const rows = this.groups.flatMap((group) => group.rows);
    const page = Math.max(1, Math.floor(this.body.clientHeight / ROW) - 1);
    const step = STEPS[event.key] ?? (event.key === "PageDown" ? page : -page);
    const at = rows.findIndex((row) => row.session_id === this.active);
    this.go(rows[Math.min(Math.max(at + step, 0), rows.length - 1)].session_id);
  }

  /** Lead the focus to a row, wherever it is. @param {string} id */
  go(id) {
    const group = this.groups.find((each) => each.rows.some((row) => row.session_id === id));
    if (!group) return;
    const top = group.top + HEAD + group.rows.findIndex((row) => row.session_id === id) * ROW;
    if (top - HEAD < this.body.scrollTop) this.body.scrollTop = top - HEAD;
    else if (top + ROW > this.body.scrollTop + this.body.clientHeight) this.body.scrollTop = top + ROW - this.body.clientHeight;
    this.activate(id);
    const button = /** @type {HTMLElement | null} */ (group.list.querySelector(`[data-session="${CSS.escape(id)}"]`));
    button?.focus({ preventScroll: true });
  }

  /** @param {string} id */
  activate(id) {
    this.active = id;
    this.window();
  }

  /** @param {Hit} hit */
  hit(hit) {
    const open = (/** @type {MouseEvent} */ event) => this.page.open(hit, event.ctrlKey || event.metaKey);
    return element(
      "li",
      { hue: hue(hit.profile) },
      element(
        "button.hit",
        { type: "button", onclick: open },
        element("span.profile", {}, hit.profile),
        element("span.name", { dir: "auto" }, hit.title ?? text("untitled")),
        element("span.snippet", { dir: "auto" }, marked(hit)),
      ),
    );
  }
}

/** The snippet with what was looked for marked; the ranges count code points. @param {Hit} hit */
function marked({ snippet, matches }) {
  const points = [...snippet];
  const parts = [];
  let at = 0;
  for (const [from, to] of matches) {
    parts.push(points.slice(at, from).join(""), element("mark", {}, points.slice(from, to).join("")));
    at = to;
  }
  return [...parts, points.slice(at).join("")];
}

/** The time of what is of today, else the day. @param {number} seconds since 1970 */
function when(seconds) {
  const then = new Date(seconds * 1000);
  return then.toDateString() === new Date().toDateString() ? clock(seconds) : then.toLocaleDateString(undefined, { day: "numeric", month: "short" });
}
