// The sessions of all profiles, read from the server: pages of the list, and words in messages.

/** Sessions of one look at the list: as many as the server gives at once. */
export const PAGE = 200;

/** Messages of one profile that a search shows. */
const HITS = 20;

/** @typedef {import("./session_list.js").Row} Row */
/** @typedef {import("./session_list.js").Filter} Filter */
/** @typedef {import("../../clients/typescript/src/contract.ts").SessionList} SessionList */

/**
 * What is known of the list. What changed stands at its beginning, so a look reads as far as something is new, and takes
 * the rest as it was: whoever has thousands of sessions does not read them all again with every change.
 */
export class Listing {
  /** @param {import("./gateway.js").Gateway} gateway */
  constructor(gateway) {
    this.gateway = gateway;
    /** `next` is where older ones are found. @type {{filter: Filter, rows: Row[], next: string | null}} */
    this.known = { filter: "all", rows: [], next: null };
    /** Sessions that may have changed without moving to the beginning. @type {Set<string>} */
    this.touched = new Set();
  }

  /** Take nothing as it was: something may have happened that was not told. */
  forget() {
    this.known = { filter: "all", rows: [], next: null };
  }

  /**
   * @param {Filter} filter
   * @param {number} wanted as many, if there are
   * @returns {Promise<{rows: Row[], more: boolean}>}
   */
  async look(filter, wanted) {
    const known = this.known.filter === filter ? this.known : { filter, rows: [], next: null };
    const places = new Map(known.rows.map((row, at) => [row.session_id, at]));
    const touched = new Set([...this.touched].filter((id) => places.has(id)));
    this.touched.clear();
    const state = filter === "all" || filter === "archived" ? null : filter;
    /** @type {Map<string, Row>} */
    const rows = new Map();
    /** @type {string | null} */
    let before = null;
    let joined = false;
    do {
      /** @type {SessionList} */
      const page = await this.gateway.call("session.list", { profile: "*", limit: PAGE, before, state, archived: filter === "archived" });
      for (const row of page.sessions) {
        touched.delete(row.session_id);
        if (filter !== "archived" || row.archived) rows.set(row.session_id, row);
      }
      before = page.next ?? null;
      const last = page.sessions.at(-1);
      const at = last && places.get(last.session_id);
      if (!joined && before && !touched.size && at !== undefined && JSON.stringify(last) === JSON.stringify(known.rows[at])) {
        // From here on it is as it was, without those that have moved to the beginning.
        for (const row of known.rows.slice(at + 1)) if (!rows.has(row.session_id)) rows.set(row.session_id, row);
        before = known.next;
        joined = true;
      }
    } while (before && rows.size < wanted);
    this.known = { filter, rows: [...rows.values()], next: before };
    return { rows: this.known.rows, more: before !== null };
  }
}

/**
 * Those whose titles have the words, of all that there are.
 * @param {import("./gateway.js").Gateway} gateway
 * @param {Filter} filter
 * @param {string} query
 * @returns {Promise<Row[]>}
 */
export async function titled(gateway, filter, query) {
  const state = filter === "all" || filter === "archived" ? null : filter;
  const told = await gateway.call("session.list", { profile: "*", limit: PAGE, query, state, archived: filter === "archived" }).catch(() => ({ sessions: [] }));
  return filter === "archived" ? told.sessions.filter((row) => row.archived) : told.sessions;
}

/**
 * In the messages of all profiles; each is asked by itself, and a session is told once.
 * @param {import("./gateway.js").Gateway} gateway
 * @param {string[]} profiles
 * @param {string} query
 */
export async function search(gateway, profiles, query) {
  const found = await Promise.all(
    profiles.map(async (profile) => {
      const { hits } = await gateway.call("session.search", { profile, query, limit: HITS }).catch(() => ({ hits: [] }));
      return hits.map((hit) => ({ ...hit, profile }));
    }),
  );
  const seen = new Set();
  return found.flat().filter((hit) => !seen.has(hit.session_id) && seen.add(hit.session_id));
}
