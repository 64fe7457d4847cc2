// The sessions of all profiles in one list: grouped, searched, live.

import { clock, element, hue, put } from "./dom.js";
import { text } from "./texts.js";

const DAY = 86_400;

/** @typedef {{session_id: string, profile: string, title: string | null, state: string, updated_at: number, preview: string}} Row */

export class SessionList {
  /** @param {(row: Row, beside: boolean) => void} open */
  constructor(open) {
    this.open = open;
    /** @type {Row[]} */
    this.rows = [];
    this.grouping = localStorage.getItem("hermes-ws.grouping") ?? "profile";
    this.query = "";
    this.current = new Set();
    const search = /** @type {HTMLInputElement} */ (
      element("input", { type: "search", placeholder: text("search"), "aria-label": text("search") })
    );
    search.addEventListener("input", () => {
      this.query = search.value.trim().toLowerCase();
      this.draw();
    });
    const grouping = /** @type {HTMLSelectElement} */ (
      element(
        "select",
        { "aria-label": text("groupBy") },
        ["profile", "date", "state"].map((by) =>
          element("option", { value: by, selected: by === this.grouping }, text(`by${by[0].toUpperCase()}${by.slice(1)}`)),
        ),
      )
    );
    grouping.addEventListener("change", () => {
      this.grouping = grouping.value;
      localStorage.setItem("hermes-ws.grouping", this.grouping);
      this.draw();
    });
    this.groups = element("div.groups");
    this.root = element("div.sessions", {}, element("div.tools", {}, search, grouping), this.groups);
  }

  /** @param {Row[]} rows */
  set(rows) {
    this.rows = rows;
    this.draw();
  }

  draw() {
    const shown = this.rows.filter((row) => `${row.title ?? ""} ${row.preview} ${row.profile}`.toLowerCase().includes(this.query));
    /** @type {Map<string, Row[]>} */
    const groups = new Map();
    for (const row of shown) {
      const key = this.key(row);
      groups.set(key, [...(groups.get(key) ?? []), row]);
    }
    put(
      this.groups,
      shown.length === 0 && element("p.empty", {}, text("noSessions")),
      [...groups].map(([key, rows]) =>
        element(
          "section",
          this.grouping === "profile" ? { hue: hue(key) } : {},
          element("h2", {}, text(key)),
          element("ul", {}, rows.map((row) => this.row(row))),
        ),
      ),
    );
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
    return element(
      "li",
      { hue: hue(row.profile) },
      element(
        "button.session",
        {
          type: "button",
          "aria-current": this.current.has(row.session_id) ? "true" : false,
          "data-session": row.session_id,
          title: text("beside"),
          onclick: (/** @type {MouseEvent} */ event) => this.open(row, event.ctrlKey || event.metaKey),
        },
        element(`span.dot.${row.state}`, { role: "img", "aria-label": text(row.state) }),
        element("span.name", { dir: "auto" }, name),
        element("span.meta", {}, this.grouping === "profile" ? clock(row.updated_at) : row.profile),
      ),
    );
  }
}
