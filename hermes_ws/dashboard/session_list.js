// The sessions of all profiles in one list: grouped, filtered, searched, live. Rows are made once and patched.

import { clock, element, hue, put, sync } from "./dom.js";
import { text } from "./texts.js";

const DAY = 86_400;

/** Rows of one group that are made at first, and more each time its end comes into sight. */
const STEP = 60;

/** Milliseconds without a key before the words of messages are searched. */
const SETTLED = 250;

/** Shorter words are in every message. */
const SHORTEST = 3;

const FILTERS = /** @type {const} */ (["all", "running", "waiting", "lost", "archived"]);

/** @typedef {(typeof FILTERS)[number]} Filter */
/** @typedef {import("../../clients/typescript/src/contract.ts").SessionRow} Row */
/** @typedef {import("../../clients/typescript/src/contract.ts").SearchHit & {profile: string}} Hit */

export class SessionList {
  /**
   * @param {{open: (row: {session_id: string, profile: string}, beside: boolean) => void, filtered: () => void,
   *          search: (query: string) => Promise<Hit[]>, older: () => void}} page
   */
  constructor(page) {
    this.page = page;
    /** @type {Row[]} */
    this.rows = [];
    /** @type {Hit[]} */
    this.hits = [];
    this.more = false;
    this.grouping = localStorage.getItem("hermes-ws.grouping") ?? "profile";
    this.filter = /** @type {Filter} */ ("all");
    this.query = "";
    this.searching = 0;
    this.current = new Set();
    /** @type {Map<string, {said: string, made: HTMLElement}>} */
    this.made = new Map();
    /** @type {Map<string, {shown: number, section: HTMLElement, list: HTMLElement, more: HTMLElement}>} */
    this.groups = new Map();
    const search = /** @type {HTMLInputElement} */ (
      element("input", { type: "search", placeholder: text("search"), "aria-label": text("search") })
    );
    search.addEventListener("input", () => {
      this.query = search.value.trim().toLowerCase();
      this.hits = [];
      this.draw();
      this.lookInMessages();
    });
    const filter = this.select("show", FILTERS, this.filter, (by) => {
      this.filter = /** @type {Filter} */ (by);
      page.filtered();
    });
    const grouping = this.select("groupBy", ["profile", "date", "state"], this.grouping, (by) => {
      this.grouping = by;
      localStorage.setItem("hermes-ws.grouping", by);
      this.made.clear();
      this.groups.clear();
      this.draw();
    });
    this.body = element("div.groups");
    this.older = element("button.link.older", { type: "button", onclick: () => page.older() }, text("olderSessions"));
    this.root = element("div.sessions", {}, element("div.tools", {}, search, filter, grouping), this.body);
    this.sight = new IntersectionObserver((seen) => {
      for (const { isIntersecting, target } of seen) if (isIntersecting) /** @type {HTMLElement} */ (target).click();
    });
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
    this.draw();
  }

  lookInMessages() {
    clearTimeout(this.searching);
    if (this.query.length < SHORTEST) return;
    const asked = this.query;
    this.searching = setTimeout(async () => {
      const hits = await this.page.search(asked);
      if (asked !== this.query) return;
      this.hits = hits;
      this.draw();
    }, SETTLED);
  }

  draw() {
    const shown = this.rows.filter((row) => `${row.title ?? ""} ${row.preview} ${row.profile}`.toLowerCase().includes(this.query));
    /** @type {Map<string, Row[]>} */
    const groups = new Map();
    for (const row of shown) {
      const key = this.key(row);
      const known = groups.get(key);
      if (known) known.push(row);
      else groups.set(key, [row]);
    }
    const sections = [...groups].map(([key, rows]) => this.group(key, rows));
    for (const key of [...this.groups.keys()]) if (!groups.has(key)) this.groups.delete(key);
    if (this.made.size > 4 * shown.length + 1000) this.made.clear();
    const seen = new Set(shown.map((row) => row.session_id));
    const hits = this.hits.filter((hit) => !seen.has(hit.session_id));
    if (hits.length) sections.push(element("section.hits", {}, element("h2", {}, text("inMessages")), element("ul", {}, hits.map((hit) => this.hit(hit)))));
    if (!sections.length) sections.push(element("p.empty", {}, text("noSessions")));
    if (this.more) sections.push(this.older);
    sync(this.body, sections);
  }

  /** @param {string} key @param {Row[]} rows */
  group(key, rows) {
    let group = this.groups.get(key);
    if (!group) {
      const list = element("ul");
      const more = element("button.link.older", { type: "button" }, text("moreRows"));
      const section = element("section", this.grouping === "profile" ? { hue: hue(key) } : {}, element("h2", {}, text(key)), list, more);
      group = { shown: STEP, section, list, more };
      const made = group;
      more.addEventListener("click", () => {
        made.shown += STEP;
        this.draw();
      });
      this.sight.observe(more);
      this.groups.set(key, group);
    }
    group.more.toggleAttribute("hidden", rows.length <= group.shown);
    sync(group.list, rows.slice(0, group.shown).map((row) => this.row(row)));
    return group.section;
  }

  /** @param {Row} row */
  key(row) {
    if (this.grouping === "profile") return row.profile;
    if (this.grouping === "state") return row.state;
    const age = Date.now() / 1000 - row.updated_at;
    return age < DAY ? "today" : age < 2 * DAY ? "yesterday" : "earlier";
  }

  /** @param {Row} row */
  row(row) {
    const name = row.title ?? (row.preview || text("untitled"));
    const current = this.current.has(row.session_id);
    const said = JSON.stringify([name, row.state, row.pinned, row.updated_at, current]);
    const known = this.made.get(row.session_id);
    if (known?.said === said) return known.made;
    const made = known?.made ?? this.fresh(row);
    const [button] = made.children;
    if (current) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
    put(
      button,
      element(`span.dot.${row.state}`, { role: "img", "aria-label": text(row.state) }),
      element("span.name", { dir: "auto" }, name),
      row.pinned && element("span.pinned", { role: "img", "aria-label": text("pinned") }, "★"),
      element("span.meta", {}, this.grouping === "profile" ? clock(row.updated_at) : row.profile),
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
        element("span.snippet", { dir: "auto" }, hit.snippet),
      ),
    );
  }
}
