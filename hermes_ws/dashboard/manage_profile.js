// One profile: what it is, its models, secrets and settings. Values of secrets go in and never come out.

import { element } from "./dom.js";
import { field, form } from "./forms.js";
import { text } from "./texts.js";

/** @type {import("./manage.js").Tab} */
export async function profileTab({ gateway, profile, changed }) {
  const told = await gateway.call("profiles.describe", { profile });
  const { confinement, terminal } = told;
  return [
    element("dl", {}, pairs({ [text("profile")]: told.name, home: told.home, model: `${told.provider} / ${told.model}`, agents: told.agents.join(", ") })),
    element("h3", {}, text("confinement")),
    element(
      "dl",
      {},
      pairs({
        level: confinement.level,
        Landlock: confinement.landlock_abi || "–",
        seccomp: confinement.seccomp ? "✓" : "–",
        bubblewrap: confinement.bubblewrap ? "✓" : "–",
        network: terminal.network,
      }),
    ),
    element("ul", {}, confinement.notes.map((/** @type {string} */ note) => element("li", {}, note))),
    told.problems.length > 0 && element("h3", {}, text("problems")),
    element("ul", {}, told.problems.map((/** @type {string} */ problem) => element("li", {}, problem))),
    form(text("rename"), [field(text("newName"), { name: "name", required: true })], async (read) => {
      await gateway.call("profiles.rename", { profile, name: read("name") });
      changed(read("name"));
    }),
    form(text("clone"), [field(text("newName"), { name: "name", required: true })], async (read) => {
      await gateway.call("profiles.clone", { profile, name: read("name") });
      changed(profile);
    }),
    form(text("create"), [field(text("newName"), { name: "name", required: true })], async (read) => {
      await gateway.call("profiles.create", { name: read("name") });
      changed(profile);
    }),
    form(text("delete"), [field(text("deleteSure"), { name: "confirm", required: true })], async (read) => {
      await gateway.call("profiles.delete", { profile, confirm: read("confirm") });
      changed("");
    }),
  ];
}

/** @type {import("./manage.js").Tab} */
export async function modelsTab({ gateway, profile }) {
  const { providers } = await gateway.call("model.options", { profile });
  return providers.map((/** @type {any} */ provider) =>
    element(
      "section.card",
      {},
      element("h3", {}, provider.name, provider.is_current && element("span.mark", {}, " ✓")),
      element("p", {}, provider.authenticated ? text("keySet") : text("keyMissing"), provider.warning && ` — ${provider.warning}`),
      element("p.soft", {}, provider.models.join(", ")),
      provider.kind !== "loopback" &&
        form(text("save"), [field(text("newKey"), { name: "key", type: "password", required: true })], async (read) => {
          await gateway.call("model.save_key", { profile, slug: provider.slug, api_key: read("key") });
        }),
      form(text("check"), [], async () => {
        const told = await gateway.call("model.check", { profile, slug: provider.slug });
        if (!told.ok) throw Object.assign(new Error(told.error ?? ""), { hint: told.hint ?? "" });
        return text("checkOk");
      }),
    ),
  );
}

/** @type {import("./manage.js").Tab} */
export async function secretsTab({ gateway, profile }) {
  const { names } = await gateway.call("secrets.names", { profile });
  return [
    element("p", {}, text("secretNow"), ": ", names.map((/** @type {string} */ name) => element("code.chip", {}, name))),
    form(
      text("save"),
      [
        field(text("secretName"), { name: "name", required: true, pattern: "[A-Za-z_][A-Za-z0-9_]*" }),
        field(text("secretValue"), { name: "value", type: "password", required: true }),
      ],
      async (read) => {
        await gateway.call("secrets.set", { profile, name: read("name"), value: read("value") });
      },
    ),
  ];
}

/** @type {import("./manage.js").Tab} */
export async function settingsTab({ gateway, profile }) {
  const { sections } = await gateway.call("config.show", { profile });
  return sections.map((/** @type {any} */ section) =>
    element(
      "details.card",
      {},
      element("summary", {}, element("code", {}, section.name), " ", element("span.soft", {}, section.doc)),
      section.settings.map((/** @type {any} */ setting) =>
        form(
          text("save"),
          [
            element(
              "label",
              { title: setting.doc },
              setting.key,
              element("input", { name: "value", value: JSON.stringify(setting.value), class: setting.default ? "default" : "own" }),
            ),
          ],
          async (read) => {
            await gateway.call("config.set", { profile, key: setting.key, value: JSON.parse(read("value")) });
          },
        ),
      ),
    ),
  );
}

/** @param {Record<string, any>} values */
export function pairs(values) {
  return Object.entries(values).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, String(value))]);
}
