// What runs, and how the server is.

import { element, put } from "./dom.js";
import { bytes, count, moment, span } from "./numbers.js";
import { pairs } from "./manage_profile.js";
import { Processes } from "./processes.js";
import { text } from "./texts.js";

/** @type {import("./manage.js").Tab} */
export async function processesTab({ gateway, profile }) {
  const processes = new Processes(gateway, { profile }, true);
  await processes.look();
  return [processes.shown.size ? processes.root : element("p.empty", {}, text("noProcesses"))];
}

/** Milliseconds between two looks at the server while its panel is open. */
const LOOK = 2000;

/** @type {import("./manage.js").Tab} */
export async function serverTab({ gateway }) {
  const place = element("div.cards");
  const draw = async () => {
    const [told, about] = await Promise.all([gateway.call("runtime.statistics", {}), gateway.call("runtime.describe", {})]);
    put(
      place,
      told.draining && element("p.warn", { role: "alert" }, text("draining")),
      element(
        "dl.figures",
        {},
        [
          [text("uptime"), span(told.uptime_s)],
          [text("connections"), count(told.connections)],
          [text("requests"), count(told.requests)],
          [text("memoryOfServer"), bytes(told.memory_bytes)],
          [text("descriptors"), count(told.descriptors)],
          [text("threads"), count(told.threads)],
        ].map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", { dir: "auto" }, value))),
      ),
      told.guard_tripped > 0 && element("p.warn", {}, text("guardTripped", { n: String(told.guard_tripped) })),
      element("h3", {}, text("profilesOpen")),
      element(
        "div.wide-table",
        { tabindex: 0, role: "region", "aria-label": text("profilesOpen") },
        element(
          "table",
          {},
          element("thead", {}, element("tr", {}, ["profile", "state", "sessionsOpen", "runningNow", "wardens", "tasks"].map((each) => element("th", { scope: "col" }, text(each))))),
          element(
            "tbody",
            {},
            told.profiles.map((row) =>
              element("tr", {}, element("th", { scope: "row" }, row.name), element("td", {}, text(`profile.${row.state}`)), [row.sessions_open, row.running, row.wardens, row.tasks].map((each) => element("td", {}, count(each)))),
            ),
          ),
        ),
      ),
      element("h3", {}, text("connectedNow"), " ", element("span.soft", {}, text(gateway.rights.has("admin") ? "connectedAll" : "connectedOwn"))),
      element(
        "div.wide-table",
        { tabindex: 0, role: "region", "aria-label": text("connections") },
        element(
          "table.connections",
          {},
          element("thead", {}, element("tr", {}, ["who", "transport", "program", "since", "listensTo"].map((each) => element("th", { scope: "col" }, text(each))))),
          element("tbody", {}, (told.connected ?? []).map(connection)),
        ),
      ),
      element("dl", {}, pairs({ [text("version")]: about.server.version, [text("protocol")]: `${about.protocol.major}.${about.protocol.minor}`, [text("durability")]: about.durability, [text("launchProfile")]: about.launch, [text("since")]: moment(about.started_at), PID: about.pid })),
    );
  };
  await draw();
  const again = setInterval(() => {
    if (!place.isConnected) clearInterval(again);
    else if (!document.hidden && !place.contains(document.activeElement)) draw().catch(() => undefined);
  }, LOOK);
  return [place];
}

/** @param {import("../../clients/typescript/src/contract.ts").ConnectionRow} row */
function connection({ principal, transport, client, since, profile, subscriptions }) {
  const followed = [...new Set(subscriptions.map((each) => `${each.profile} · ${each.session_id}`))];
  const profiles = [...new Set(subscriptions.map((each) => each.profile))];
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, principal, profile && element("span.soft", {}, ` ${profile}`)),
    element("td", {}, text(`transport.${transport}`)),
    element("td", {}, client || "–"),
    element("td", {}, moment(since)),
    element("td", { title: followed.join("\n") }, count(followed.length), profiles.length > 0 && element("span.soft", {}, ` ${profiles.join(", ")}`)),
  );
}
