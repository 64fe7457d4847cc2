// What runs, what it cost, who may come in, and how the server is.

import { element } from "./dom.js";
import { pairs } from "./manage_profile.js";
import { Processes } from "./processes.js";
import { text } from "./texts.js";

/** @type {import("./manage.js").Tab} */
export async function processesTab({ gateway, profile }) {
  const processes = new Processes(gateway, { profile }, true);
  await processes.look();
  return [processes.shown.size ? processes.root : element("p.empty", {}, text("noProcesses"))];
}

/** @type {import("./manage.js").Tab} */
export async function usageTab({ gateway, profile }) {
  const told = await gateway.call("insights.get", { profile, days: 30 });
  const most = Math.max(1, ...told.by_day.map((/** @type {any} */ day) => day.input_tokens + day.output_tokens));
  const bars = told.by_day.map((/** @type {any} */ day, /** @type {number} */ index) => {
    const height = Math.round((100 * (day.input_tokens + day.output_tokens)) / most);
    return bar(index, told.by_day.length, height, `${day.day}: ${day.input_tokens} / ${day.output_tokens}`);
  });
  return [
    element("h3", {}, text("days")),
    element("dl", {}, pairs({ [text("executions")]: told.executions, [text("inTokens")]: told.input_tokens, [text("outTokens")]: told.output_tokens })),
    chart(bars),
    element("h3", {}, text("byModel")),
    element("dl", {}, pairs(told.by_model)),
  ];
}

/** @type {import("./manage.js").Tab} */
export async function tokensTab({ gateway }) {
  const { tokens } = await gateway.call("token.list", {});
  if (!tokens.length) return [element("p.empty", {}, text("noTokens"))];
  return tokens.map((/** @type {any} */ token) => {
    const row = element(
      "section.card",
      {},
      element("strong", {}, token.name),
      element("p.soft", {}, `${token.kind} · ${token.rights.join(", ")} · ${token.profiles?.join(", ") ?? "*"}`),
      element(
        "button",
        {
          type: "button",
          onclick: async () => {
            await gateway.call("token.revoke", { token_id: token.token_id });
            row.remove();
          },
        },
        text("revoke"),
      ),
    );
    return row;
  });
}

/** @type {import("./manage.js").Tab} */
export async function serverTab({ gateway }) {
  const told = await gateway.call("runtime.statistics", {});
  return [
    element(
      "dl",
      {},
      pairs({
        [text("uptime")]: `${Math.round(told.uptime_s / 60)} min`,
        [text("connections")]: told.connections,
        [text("memory")]: `${Math.round(told.memory_bytes / 1_048_576)} MiB`,
      }),
    ),
    element(
      "table",
      {},
      told.profiles.map((/** @type {any} */ row) =>
        element("tr", {}, element("th", { scope: "row" }, row.name), element("td", {}, row.state), element("td", {}, `${row.sessions_open} ${text("sessions")}`), element("td", {}, `${row.running} ${text("running")}`)),
      ),
    ),
  ];
}

const SVG = "http://www.w3.org/2000/svg";

/** @param {SVGElement[]} bars */
function chart(bars) {
  const drawn = document.createElementNS(SVG, "svg");
  drawn.setAttribute("viewBox", "0 0 300 100");
  drawn.setAttribute("class", "chart");
  drawn.setAttribute("role", "img");
  drawn.setAttribute("aria-label", text("days"));
  drawn.append(...bars);
  return drawn;
}

/** @param {number} index @param {number} count @param {number} height @param {string} said */
function bar(index, count, height, said) {
  const width = 300 / Math.max(count, 1);
  const drawn = document.createElementNS(SVG, "rect");
  for (const [name, value] of Object.entries({ x: index * width, y: 100 - height, width: Math.max(width - 2, 1), height, rx: 1 })) {
    drawn.setAttribute(name, String(value));
  }
  const title = document.createElementNS(SVG, "title");
  title.append(said);
  drawn.append(title);
  return drawn;
}
