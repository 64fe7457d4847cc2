// What it cost: by day, by model and by profile, drawn and as tables.

import { element, put } from "./dom.js";
import { choice, said } from "./forms.js";
import { count, money } from "./numbers.js";
import { text } from "./texts.js";

/** @typedef {import("../../clients/typescript/src/contract.ts").Insights} Insights */

const SVG = "http://www.w3.org/2000/svg";

const DAY_MS = 86_400_000;

/** @type {import("./manage.js").Tab} */
export async function usageTab({ gateway, profile, profiles }) {
  const range = choice(text("range"), "days", [["7", text("lastDays", { n: "7" })], ["30", text("lastDays", { n: "30" })], ["90", text("lastDays", { n: "90" })]], "30");
  const select = /** @type {HTMLSelectElement} */ (range.querySelector("select"));
  const place = element("div.cards", { "aria-live": "polite" });
  const draw = async () => {
    const days = Number(select.value);
    try {
      // Each profile is asked by itself: what one is used for is told by no other.
      const all = await Promise.all(profiles.map((name) => gateway.call("insights.get", { profile: name, days })));
      const own = all.find((each) => each.profile === profile) ?? (await gateway.call("insights.get", { profile, days }));
      if (Number(select.value) === days) put(place, ...shown(own, all));
    } catch (error) {
      put(place, element("p.problem", { role: "alert" }, said(error)));
    }
  };
  select.addEventListener("change", draw);
  await draw();
  return [range, place];
}

/** @param {Insights} own @param {Insights[]} all */
function shown(own, all) {
  const days = everyDay(own);
  const models = Object.entries(own.by_model).sort(([, one], [, two]) => two - one);
  const profiles = [...all].sort((one, two) => total(two) - total(one));
  return [
    element(
      "dl.figures",
      {},
      [
        [text("sessions"), count(own.sessions)],
        [text("executions"), count(own.executions)],
        [text("messages"), count(own.messages)],
        [text("inTokens"), count(own.input_tokens)],
        [text("outTokens"), count(own.output_tokens)],
        [text("cost"), money(own.cost_usd)],
      ].map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
    ),
    !own.executions && element("p.empty", {}, text("noUsage")),
    element("h3", {}, text("byDay")),
    columns(days),
    table(text("byDay"), [text("day"), text("executions"), text("inTokens"), text("outTokens"), text("cost")], own.by_day.map((day) => [day.day, count(day.executions), count(day.input_tokens), count(day.output_tokens), money(day.cost_usd)])),
    element("h3", {}, text("byModel")),
    rows(models.map(([name, value]) => [name, value, text("nTimes", { n: count(value) })])),
    element("h3", {}, text("byProfile")),
    rows(profiles.map((each) => [each.profile, total(each), `${count(total(each))} ${text("tokensUsed")} · ${money(each.cost_usd)}`])),
    element("p.soft", {}, text("utc")),
  ];
}

/** @param {Insights} each */
function total(each) {
  return each.input_tokens + each.output_tokens;
}

/** The days of the range, those without anything too. @param {Insights} told */
function everyDay(told) {
  const known = new Map(told.by_day.map((day) => [day.day, day]));
  const today = Date.now();
  return Array.from({ length: told.days }, (_, ago) => {
    const day = new Date(today - (told.days - 1 - ago) * DAY_MS).toISOString().slice(0, 10);
    return known.get(day) ?? { day, executions: 0, input_tokens: 0, output_tokens: 0, cost_usd: null };
  });
}

/** @param {string} name @param {Record<string, string | number>} attributes @param {...Node} children */
function svg(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

/** Input below, output above it. @param {{day: string, input_tokens: number, output_tokens: number}[]} days */
function columns(days) {
  const most = Math.max(1, ...days.map((day) => day.input_tokens + day.output_tokens));
  const width = 600 / days.length;
  const drawn = days.map((day, index) => {
    const low = (110 * day.input_tokens) / most;
    const high = (110 * day.output_tokens) / most;
    const place = { x: index * width + width * 0.1, width: width * 0.8 };
    const title = svg("title", {});
    title.append(`${day.day}: ${count(day.input_tokens)} ${text("inTokens")}, ${count(day.output_tokens)} ${text("outTokens")}`);
    return svg("g", {}, title, svg("rect", { x: index * width, y: 0, width, height: 120, class: "hover" }), svg("rect", { ...place, y: 120 - low, height: low, class: "in" }), svg("rect", { ...place, y: 120 - low - high, height: high, class: "out" }));
  });
  return element(
    "figure.chart",
    {},
    svg("svg", { viewBox: "0 0 600 120", preserveAspectRatio: "none", role: "img", "aria-label": text("chartOf", { most: count(most) }) }, ...drawn),
    element("figcaption", {}, element("span", {}, days[0].day), element("span.legend", {}, element("i.in"), text("inTokens"), element("i.out"), text("outTokens")), element("span", {}, days.at(-1)?.day)),
  );
}

/** Bars from one side to the other. @param {[string, number, string][]} given name, value, and how it is said */
function rows(given) {
  const most = Math.max(1, ...given.map(([, value]) => value));
  return element(
    "ul.bars",
    {},
    given.map(([name, value, words]) => element("li", {}, element("span.name", { dir: "auto" }, name), element("meter", { min: 0, max: most, value, "aria-label": name }), element("span.soft", {}, words))),
  );
}

/** @param {string} name @param {string[]} head @param {string[][]} lines */
function table(name, head, lines) {
  return element(
    "details",
    {},
    element("summary.soft", {}, text("asTable")),
    element("div.wide-table", { tabindex: 0, role: "region", "aria-label": name }, element("table", {}, element("thead", {}, element("tr", {}, head.map((each) => element("th", { scope: "col" }, each)))), element("tbody", {}, lines.map((line) => element("tr", {}, line.map((each, at) => element(at ? "td" : "th", at ? {} : { scope: "row" }, each))))))),
  );
}
