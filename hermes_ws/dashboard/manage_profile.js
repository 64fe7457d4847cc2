// One profile: what it is, what the kernel enforces for it, and its life: create, clone, rename, delete.

import { element } from "./dom.js";
import { area, field, form, ticks } from "./forms.js";
import { bytes, span } from "./numbers.js";
import { text } from "./texts.js";

const PARTS = /** @type {const} */ (["config", "soul", "agents", "skills", "memory", "files", "secrets", "sessions"]);

/** What comes along when one profile is made from another, unless it is said otherwise. */
const USUAL = ["config", "soul", "agents", "skills"];

/** @type {import("./manage.js").Tab} */
export async function profileTab({ gateway, profile, profiles, changed, again }) {
  const told = await gateway.call("profiles.describe", { profile });
  const setup = await gateway.call("setup.status", { profile });
  return [
    element(
      "section.card.about",
      {},
      element("h3", {}, element(`span.dot.${setup.ready ? "done" : "waiting"}`), told.name, element("span.soft", {}, text(setup.ready ? "canAnswer" : "cannotAnswer"))),
      !setup.ready && element("p.warn", {}, `${setup.error ?? ""} ${setup.hint ?? ""}`),
      element(
        "dl",
        {},
        pairs({
          [text("model")]: `${told.model} · ${told.provider}`,
          [text("agents")]: told.agents.join(", "),
          [text("toolsets")]: told.toolsets.join(", "),
          [text("home")]: told.home,
        }),
      ),
    ),
    told.problems.length > 0 && element("section.card.bad", {}, element("h3", {}, text("problems")), element("ul", {}, told.problems.map((problem) => element("li", {}, problem)))),
    // As the server says it of a home that was imported and not confirmed since.
    told.problems.some((problem) => problem.includes("imported")) &&
      element("section.card", {}, element("h3", {}, text("confirmWhat")), element("p.soft", {}, text("confirmHow")), form(text("confirmIt"), [], async () => {
        await gateway.call("profiles.confirm", { profile });
        await again();
        return text("confirmed");
      })),
    ...confinement(told),
    element("h3", {}, text("changeProfile")),
    told.soul !== null && more("soulWhat", instructions(gateway, profile, told.soul ?? "")),
    form(
      text("rename"),
      [field(text("newName"), { name: "name", required: true, placeholder: told.name })],
      async (read) => {
        await gateway.call("profiles.rename", { profile, name: read("name") });
        changed(read("name"));
      },
      { about: profile },
    ),
    more(
      "cloneWhat",
      form(
        text("clone"),
        [field(text("newName"), { name: "name", required: true }), ticks(text("takeAlong"), "include", PARTS.map((part) => [part, text(`part.${part}`)]), USUAL)],
        async (read, data) => {
          const include = /** @type {(typeof PARTS)[number][]} */ (data.getAll("include").map(String));
          const made = await gateway.call("profiles.clone", { profile, name: read("name"), include });
          changed(profile);
          return [text("profileMade", { name: made.name, home: made.home }), made.skipped.length > 0 && `${text("skipped")} ${made.skipped.join(", ")}`].filter(Boolean).join(" ");
        },
        { primary: true, again: true },
      ),
    ),
    more(
      "createWhat",
      form(
        text("create"),
        [field(text("newName"), { name: "name", required: true }), area(text("instructions"), { name: "soul", rows: 4, placeholder: text("instructionsHow") })],
        async (read) => {
          const made = await gateway.call("profiles.create", { name: read("name"), ...(read("soul").trim() ? { soul: read("soul") } : {}) });
          changed(profile);
          return text("profileMade", { name: made.name, home: made.home });
        },
        { primary: true, again: true },
      ),
    ),
    more("exportWhat", exporting(gateway, profile)),
    more("importWhat", importing(gateway, () => changed(profile))),
    profiles.length > 1 &&
      more(
        "deleteWhat",
        form(
          text("deleteForGood"),
          [element("p.warn", {}, text("deleteTakes")), field(text("deleteSure", { name: profile }), { name: "confirm", required: true })],
          async (read) => {
            await gateway.call("profiles.delete", { profile, confirm: read("confirm") });
            changed("");
          },
          { danger: true },
        ),
      ),
    element("div.choices", {}, form(text("readAgain"), [], async () => {
      const { problems } = await gateway.call("reload.env", { profile });
      await again();
      return problems.join(" ");
    })),
  ];
}

/** @param {import("./gateway.js").Gateway} gateway @param {string} profile @param {string} soul */
function instructions(gateway, profile, soul) {
  return form(
    text("save"),
    [element("p.soft", {}, text("soulHow")), area(text("instructions"), { name: "soul", rows: 12, maxlength: 65_536, placeholder: text("instructionsHow") }, soul)],
    async (read) => {
      await gateway.call("profiles.configure", { profile, soul: read("soul") });
    },
    { primary: true },
  );
}

/** @param {import("./gateway.js").Gateway} gateway @param {string} profile */
function exporting(gateway, profile) {
  return form(
    text("export"),
    [
      element("p.soft", {}, text("exportHow")),
      ticks(text("takeAlong"), "include", PARTS.map((part) => [part, text(`part.${part}`)]), [...USUAL, "memory", "sessions"]),
      field(text("passphrase"), { name: "passphrase", type: "password", autocomplete: "new-password" }),
    ],
    async (read, data) => {
      const include = /** @type {(typeof PARTS)[number][]} */ (data.getAll("include").map(String));
      const passphrase = read("passphrase") || null;
      const made = await gateway.call("profiles.export", { profile, include, passphrase });
      const told = text("exported", { files: String(made.files), size: bytes(made.size), path: made.path });
      return made.skipped.length ? `${told}. ${text("skipped")} ${made.skipped.join(", ")}` : told;
    },
    { primary: true },
  );
}

/** @param {import("./gateway.js").Gateway} gateway @param {() => void} changed */
function importing(gateway, changed) {
  return form(
    text("import"),
    [
      element("p.soft", {}, text("importHow")),
      field(text("archiveFile"), { name: "path", required: true, spellcheck: "false", dir: "ltr" }),
      field(text("newName"), { name: "name", required: true }),
      field(text("passphrase"), { name: "passphrase", type: "password" }),
      element("label.inline", {}, element("input", { type: "checkbox", name: "secrets" }), text("withSecrets")),
    ],
    async (read, data) => {
      const given = { path: read("path"), name: read("name"), secrets: data.has("secrets"), passphrase: read("passphrase") || null };
      const made = await gateway.call("profiles.import", given);
      changed();
      return text("profileMade", { name: made.name, home: made.home });
    },
    { primary: true, again: true },
  );
}

/** @param {string} what @param {HTMLElement} inside */
function more(what, inside) {
  return element("details.card", { "data-more": what }, element("summary", {}, element("strong", {}, text(what))), inside);
}

/**
 * What the kernel holds a profile's commands to; what it does not is said as plainly.
 * @param {import("../../clients/typescript/src/contract.ts").ProfileDescription} told
 */
function confinement({ confinement: found, terminal }) {
  const rows = /** @type {[string, boolean, string][]} */ ([
    ["layer.files", found.landlock_abi > 0, found.landlock_abi > 0 ? `Landlock ${found.landlock_abi}` : text("notEnforced")],
    ["layer.calls", found.seccomp, found.seccomp ? "seccomp" : text("notEnforced")],
    ["layer.namespaces", found.bubblewrap, found.bubblewrap ? "bubblewrap" : text("notEnforced")],
    ["layer.capabilities", found.dropped_capabilities, text(found.dropped_capabilities ? "dropped" : "notDropped")],
    ["layer.network", terminal.network === "deny", text(`network.${terminal.network}`)],
    ["layer.processes", true, `${terminal.processes ?? "∞"} · ${text(`held.${found.processes}`)}`],
    ["layer.memory", found.memory === "cgroup", `${typeof terminal.memory_bytes === "number" ? bytes(terminal.memory_bytes) : "∞"} · ${text(`held.${found.memory}`)}`],
    ["layer.time", true, typeof terminal.deadline_s === "number" ? span(terminal.deadline_s) : "∞"],
  ]);
  return [
    element("h3", {}, text("confinement")),
    element("p.soft", {}, text(`level.${found.level}`)),
    element(
      "table.layers",
      {},
      element("tbody", {}, rows.map(([name, held, how]) => element("tr", {}, element("th", { scope: "row" }, text(name)), element("td", {}, element(`span.mark.${held ? "yes" : "no"}`, { "aria-hidden": "true" }, held ? "✓" : "–"), how)))),
    ),
    found.notes.length > 0 && element("ul.notes", {}, found.notes.map((note) => element("li", {}, note))),
  ];
}

/** @param {Record<string, any>} values */
export function pairs(values) {
  return Object.entries(values).flatMap(([name, value]) => [element("dt", {}, name), element("dd", { dir: "auto" }, String(value))]);
}
