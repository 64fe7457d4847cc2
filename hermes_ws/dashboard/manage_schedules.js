// Prompts that are submitted at their time.

import { element } from "./dom.js";
import { area, choice, field, form } from "./forms.js";
import { moment, span } from "./numbers.js";
import { text } from "./texts.js";

/** @type {import("./manage.js").Tab} */
export async function schedulesTab({ gateway, profile, again }) {
  const [{ schedules }, { agents }] = await Promise.all([gateway.call("schedule.list", { profile }), gateway.call("agent.list", { profile })]);
  /** @param {string} label @param {string} about @param {() => Promise<unknown>} does @param {string} [sure] */
  const act = (label, about, does, sure = "") =>
    form(
      text(label),
      [],
      async () => {
        if (sure && !confirm(sure)) return "";
        await does();
        await again();
      },
      { about, danger: sure !== "" },
    );
  return [
    !schedules.length && element("p.empty", {}, text("noSchedules")),
    ...schedules.map((row) => {
      const of = { profile, schedule_id: row.schedule_id };
      const name = row.title ?? row.prompt.slice(0, 80);
      const when = row.cron ?? (row.every_s ? text("every", { span: span(row.every_s) }) : row.at ? moment(row.at) : "");
      return element(
        "section.card",
        { "data-schedule": row.schedule_id },
        element("h3", { dir: "auto" }, element(`span.dot.${row.state === "active" ? "running" : "idle"}`), name, element("span.soft", {}, text(row.state))),
        row.title && element("p", { dir: "auto" }, row.prompt.slice(0, 300)),
        element("p.soft", {}, element("code", {}, when), row.cron && ` · ${row.timezone}`, row.agent && ` · ${row.agent}`, ` · ${text("runs", { n: String(row.runs) })}`),
        element("p.soft", {}, [row.next_at && `${text("nextAt")} ${moment(row.next_at)}`, row.last_at && `${text("lastAt")} ${moment(row.last_at)}`].filter(Boolean).join(" · ")),
        row.last_problem && element("p.problem", {}, row.last_problem),
        element(
          "div.choices",
          {},
          row.state === "active" && act("pause", name, () => gateway.call("schedule.pause", of)),
          row.state === "paused" && act("goOn", name, () => gateway.call("schedule.resume", of)),
          act("runNow", name, () => gateway.call("schedule.run", of)),
          act("delete", name, () => gateway.call("schedule.delete", of), text("deleteScheduleSure", { name })),
        ),
      );
    }),
    element("h3", {}, text("newSchedule")),
    creating(gateway, profile, agents, again),
  ];
}

/**
 * @param {import("./gateway.js").Gateway} gateway @param {string} profile
 * @param {import("../../clients/typescript/src/contract.ts").AgentRow[]} agents @param {() => Promise<void>} again
 */
function creating(gateway, profile, agents, again) {
  const how = choice(text("when"), "how", [["cron", text("when.cron")], ["every", text("when.every")], ["at", text("when.at")]]);
  const ways = {
    cron: [field(text("cron"), { name: "cron", placeholder: "0 8 * * 1-5", required: true }), field(text("timezone"), { name: "timezone", value: Intl.DateTimeFormat().resolvedOptions().timeZone, required: true })],
    every: [field(text("everyMinutes"), { name: "every_s", type: "number", min: 1, value: 60, required: true })],
    at: [field(text("at"), { name: "at", type: "datetime-local", required: true })],
  };
  const made = form(
    text("create"),
    [
      area(text("what"), { name: "prompt", required: true, rows: 2 }),
      field(text("newTitle"), { name: "title", dir: "auto" }),
      how,
      ...ways.cron,
      ...ways.every,
      ...ways.at,
      agents.length > 1 && choice(text("agentNow"), "agent", agents.map((row) => [row.name, row.name])),
    ],
    async (read) => {
      const when = {
        cron: () => ({ cron: read("cron"), timezone: read("timezone") }),
        every: () => ({ every_s: Math.round(Number(read("every_s")) * 60) }),
        at: () => ({ at: new Date(read("at")).getTime() / 1000 }),
      }[/** @type {"cron" | "every" | "at"} */ (read("how"))]();
      await gateway.call("schedule.create", {
        profile,
        prompt: read("prompt"),
        ...(read("title").trim() ? { title: read("title").trim() } : {}),
        ...(read("agent") ? { agent: read("agent") } : {}),
        ...when,
      });
      await again();
    },
    { primary: true },
  );
  const select = /** @type {HTMLSelectElement} */ (how.querySelector("select"));
  // Of a way that is not chosen, no field is sent or missed.
  const show = () => {
    for (const [way, fields] of Object.entries(ways)) {
      for (const each of fields) {
        each.toggleAttribute("hidden", way !== select.value);
        each.querySelector("input")?.toggleAttribute("disabled", way !== select.value);
      }
    }
  };
  select.addEventListener("change", show);
  show();
  return made;
}
