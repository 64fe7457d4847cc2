// What a profile's agents know and do by themselves: skills, tool servers, memory, schedules.

import { element, put } from "./dom.js";
import { field, form } from "./forms.js";
import { text } from "./texts.js";

/** @type {import("./manage.js").Tab} */
export async function skillsTab({ gateway, profile }) {
  const { skills } = await gateway.call("skills.list", { profile });
  if (!skills.length) return [element("p.empty", {}, text("noSkills"))];
  return skills.map((row) => {
    const shown = element("pre", { dir: "auto" });
    const details = element(
      "details.card",
      {},
      element("summary", {}, element("code", {}, row.name), " ", element("span.soft", {}, row.description)),
      row.problem && element("p.problem", {}, row.problem),
      shown,
    );
    details.addEventListener("toggle", async () => {
      if (details.hasAttribute("open") && !row.problem) put(shown, (await gateway.call("skills.view", { profile, name: row.name })).text);
    });
    return details;
  });
}

/** @type {import("./manage.js").Tab} */
export async function toolServersTab({ gateway, profile, session }) {
  if (!session) return [element("p.empty", {}, text("serversOfSession"))];
  const of = { session_id: session, profile };
  const { servers } = await gateway.call("mcp.status", of);
  if (!servers.length) return [element("p.empty", {}, text("noServers"))];
  return servers.map((row) =>
    element(
      "section.card",
      {},
      element("h3", {}, element(`span.dot.${DOTS[row.state]}`, { role: "img", "aria-label": text(row.state) }), " ", row.name, element("span.soft", {}, ` ${row.transport} · ${text(row.state)}`)),
      row.problem && element("p.problem", {}, row.problem),
      element("p", {}, (row.tools ?? []).map((tool) => element("code.chip", {}, tool))),
      form(text("restart"), [], async () => {
        await gateway.call("mcp.restart", { ...of, server: row.name });
        return text("restartedServer");
      }),
    ),
  );
}

const DOTS = Object.freeze({ stopped: "idle", starting: "running", ready: "done", failed: "failed" });

/** @type {import("./manage.js").Tab} */
export async function memoryTab({ gateway, profile }) {
  const kept = await gateway.call("memory.get", { profile });
  return /** @type {const} */ (["memory", "user"]).map((target) =>
    form(
      text("save"),
      [element("label.wide", {}, text(`noted.${target}`), element("textarea", { name: "text", rows: "8", dir: "auto", maxlength: kept.limit }, kept[target]))],
      async (read) => {
        await gateway.call("memory.set", { profile, target, text: read("text") });
      },
    ),
  );
}

/** @type {import("./manage.js").Tab} */
export async function schedulesTab(subject) {
  const { gateway, profile, again } = subject;
  const { schedules } = await gateway.call("schedule.list", { profile });
  const act = (/** @type {string} */ label, /** @type {() => Promise<unknown>} */ does) =>
    form(text(label), [], async () => {
      await does();
      again();
    });
  return [
    ...schedules.map((row) => {
      const of = { profile, schedule_id: row.schedule_id };
      return element(
        "section.card",
        { "data-schedule": row.schedule_id },
        element("h3", { dir: "auto" }, row.title ?? row.prompt.slice(0, 80)),
        element("p.soft", {}, [row.cron ?? (row.every_s ? `${row.every_s} s` : ""), row.timezone, text(row.state)].filter(Boolean).join(" · ")),
        element("p.soft", {}, row.next_at ? `${text("nextAt")} ${new Date(row.next_at * 1000).toLocaleString()}` : ""),
        row.last_problem && element("p.problem", {}, row.last_problem),
        element(
          "div.choices",
          {},
          row.state === "active" && act("pause", () => gateway.call("schedule.pause", of)),
          row.state === "paused" && act("goOn", () => gateway.call("schedule.resume", of)),
          act("runNow", () => gateway.call("schedule.run", of)),
          act("delete", () => gateway.call("schedule.delete", of)),
        ),
      );
    }),
    element("h3", {}, text("newSchedule")),
    form(
      text("create"),
      [
        field(text("what"), { name: "prompt", required: true, dir: "auto" }),
        field(text("cron"), { name: "cron", required: true, placeholder: "0 8 * * 1-5" }),
        field(text("timezone"), { name: "timezone", required: true, value: Intl.DateTimeFormat().resolvedOptions().timeZone }),
      ],
      async (read) => {
        await gateway.call("schedule.create", { profile, prompt: read("prompt"), cron: read("cron"), timezone: read("timezone") });
        again();
      },
    ),
  ];
}
