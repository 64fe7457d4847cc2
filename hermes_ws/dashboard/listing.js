// The sessions of all profiles, read from the server: pages of the list, and words in messages.

/** Sessions of one look at the list: as many as the server gives at once. */
export const PAGE = 200;

/** Messages of one profile that a search shows. */
const HITS = 20;

/** @typedef {import("./session_list.js").Row} Row */
/** @typedef {import("./session_list.js").Filter} Filter */
/** @typedef {import("../../clients/typescript/src/contract.ts").SessionList} SessionList */

/**
 * Pages of the list until there are as many as are wanted.
 * @param {import("./gateway.js").Gateway} gateway
 * @param {Filter} filter
 * @param {number} wanted
 * @returns {Promise<{rows: Row[], more: boolean}>}
 */
export async function sessions(gateway, filter, wanted) {
  const state = filter === "all" || filter === "archived" ? null : filter;
  /** @type {Row[]} */
  const rows = [];
  /** @type {string | null} */
  let before = null;
  do {
    /** @type {SessionList} */
    const page = await gateway.call("session.list", { profile: "*", limit: PAGE, before, state, archived: filter === "archived" });
    rows.push(...page.sessions.filter((row) => filter !== "archived" || row.archived));
    before = page.next ?? null;
  } while (before && rows.length < wanted);
  return { rows, more: Boolean(before) };
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
