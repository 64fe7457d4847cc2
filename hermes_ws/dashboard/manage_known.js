// What a profile's agents know and reach: skills, tool servers, memory.

import { element, put } from "./dom.js";
import { area, form, said } from "./forms.js";
import { text } from "./texts.js";

/** @type {import("./manage.js").Tab} */
export async function skillsTab({ gateway, profile }) {
  const { skills } = await gateway.call("skills.list", { profile });
  if (!skills.length) return [element("p.empty", {}, text("noSkills")), element("p.soft", {}, text("skillsHow"))];
  return skills.map((row) => {
    const body = element("div.cards");
    const card = element(
      "details.card",
      { "data-skill": row.name },
      element("summary", {}, element("strong", {}, row.name), element("span.soft", { dir: "auto" }, row.description), row.category && element("span.chip", {}, row.category)),
      row.problem && element("p.problem", {}, row.problem),
      body,
    );
    /** @param {string} [file] */
    const show = async (file) => {
      try {
        const seen = await gateway.call("skills.view", { profile, name: row.name, ...(file ? { file } : {}) });
        const files = seen.files.length > 0 && element("p", {}, text("files"), " ", [undefined, ...seen.files].map((each) => element("button.chip", { type: "button", "aria-pressed": String(each === file), onclick: () => show(each) }, each ?? "SKILL.md")));
        put(body, files, element("pre", { dir: "auto", tabindex: 0, "aria-label": `${row.name} ${file ?? ""}` }, seen.text));
      } catch (error) {
        put(body, element("p.problem", { role: "alert" }, said(error)));
      }
    };
    card.addEventListener("toggle", () => card.hasAttribute("open") && !row.problem && !body.childElementCount && show());
    return card;
  });
}

const DOTS = Object.freeze({ stopped: "idle", starting: "running", ready: "done", failed: "failed" });

/** Milliseconds between two looks at servers of which one is starting. */
const LOOK = 700;

/** @type {import("./manage.js").Tab} */
export async function toolServersTab({ gateway, profile, session }) {
  const { sessions } = await gateway.call("session.list", { profile, limit: 50 });
  if (!sessions.length) {
    const configured = Object.keys(/** @type {Record<string, unknown>} */ ((await gateway.call("config.get", { profile, key: "mcp_servers" })).value ?? {}));
    return [
      element("p.empty", {}, text(configured.length ? "serversOfSession" : "noServers")),
      ...configured.map((name) => element("section.card", {}, element("h3", {}, element("span.dot.idle"), name))),
      element("p.soft", {}, text("serversHow")),
    ];
  }
  const pick = /** @type {HTMLSelectElement} */ (element("select", {}, sessions.map((row) => element("option", { value: row.session_id, selected: row.session_id === session }, row.title ?? (row.preview || text("untitled"))))));
  const place = element("div.cards", { "aria-live": "polite" });
  const look = async () => {
    const session_id = pick.value;
    try {
      const { servers } = await gateway.call("mcp.status", { session_id, profile });
      if (session_id !== pick.value) return;
      put(place, ...(servers.length ? servers.map((row) => card(row, session_id)) : [element("p.empty", {}, text("noServers")), element("p.soft", {}, text("serversHow"))]));
      if (servers.some((row) => row.state === "starting")) setTimeout(() => place.isConnected && look(), LOOK);
    } catch (error) {
      put(place, element("p.problem", { role: "alert" }, said(error)));
    }
  };
  /** @param {import("../../clients/typescript/src/contract.ts").ServerRow} row @param {string} session_id */
  const card = (row, session_id) =>
    element(
      "section.card",
      { "data-server": row.name },
      element("h3", {}, element(`span.dot.${DOTS[row.state]}`, { role: "img", "aria-label": text(row.state) }), row.name, element("span.soft", {}, `${row.transport} · ${text(row.state)}`)),
      row.problem && element("p.problem", {}, row.problem),
      (row.tools ?? []).length > 0 && element("p", {}, (row.tools ?? []).map((tool) => element("code.chip", {}, tool))),
      (row.restarts ?? 0) > 0 && element("p.soft", {}, text("restarts", { n: String(row.restarts) })),
      form(
        text("restart"),
        [],
        async () => {
          await gateway.call("mcp.restart", { session_id, profile, server: row.name });
          look();
          return text("restartedServer");
        },
        { about: row.name },
      ),
    );
  pick.addEventListener("change", look);
  await look();
  return [element("label.wide", {}, element("span", {}, text("serversOf")), pick), place];
}

/** @type {import("./manage.js").Tab} */
export async function memoryTab({ gateway, profile }) {
  const kept = await gateway.call("memory.get", { profile });
  return [
    element("p.soft", {}, text("memoryWhat")),
    ...(/** @type {const} */ (["memory", "user"]).map((target) => {
      const used = element("span.soft");
      const notes = area(text(`noted.${target}`), { name: "text", rows: 9, maxlength: kept.limit }, kept[target]);
      const box = /** @type {HTMLTextAreaElement} */ (notes.querySelector("textarea"));
      const count = () => put(used, text("ofCharacters", { n: box.value.length.toLocaleString(), most: kept.limit.toLocaleString() }));
      box.addEventListener("input", count);
      count();
      return form(
        text("save"),
        [notes, used],
        async (read) => {
          await gateway.call("memory.set", { profile, target, text: read("text") });
        },
        { primary: true },
      );
    })),
  ];
}
