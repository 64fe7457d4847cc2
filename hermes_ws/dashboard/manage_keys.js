// Models with their keys, and secrets. Values go in and never come out.

import { element, put } from "./dom.js";
import { agreed, field, form, said } from "./forms.js";
import { text } from "./texts.js";

/** @type {import("./manage.js").Tab} */
export async function modelsTab({ gateway, profile, again }) {
  const { providers, provider: current, model } = await gateway.call("model.options", { profile });
  const names = providers.map((each) => each.slug);
  return [
    element("h3", {}, text("modelInForce")),
    form(
      text("use"),
      [
        element("label", {}, element("span", {}, text("provider")), element("select", { name: "provider" }, names.map((slug) => element("option", { value: slug, selected: slug === current }, slug)))),
        field(text("model"), { name: "name", value: model, required: true, list: "models-known" }),
        element("datalist", { id: "models-known" }, providers.flatMap((each) => each.models.map((name) => element("option", { value: name })))),
      ],
      async (read) => {
        const { sections } = await gateway.call("config.show", { profile });
        const rows = sections.find((each) => each.name === "model")?.settings ?? [];
        // What stands in the file stays; what does not is not written into it.
        const held = Object.fromEntries(rows.filter((row) => row.written && row.value !== null).map((row) => [row.key.slice("model.".length), row.value]));
        const value = { ...held, provider: read("provider"), name: read("name") };
        if ((await agreed(gateway, "config.set", { profile, key: "model", value })) === null) return "";
        await again();
      },
      { primary: true },
    ),
    ...providers.map((provider) => {
      const answer = element("p", { role: "status" });
      const check = element(
        "button",
        {
          type: "button",
          "aria-label": `${text("check")} ${provider.slug}`,
          onclick: async () => {
            put(answer, text("asking"));
            answer.className = "said";
            try {
              const told = await gateway.call("model.check", { profile, slug: provider.slug });
              answer.classList.toggle("bad", !told.ok);
              put(answer, told.ok ? text("checkOk", { n: String(told.models.length) }) : `${told.error ?? ""} ${told.hint ?? ""}`);
            } catch (error) {
              answer.classList.add("bad");
              put(answer, said(error));
            }
          },
        },
        text("check"),
      );
      return element(
        "section.card",
        { "data-provider": provider.slug },
        element(
          "h3",
          {},
          element(`span.dot.${provider.authenticated ? "done" : "idle"}`),
          provider.name,
          provider.is_current && element("span.badge.own", {}, text("inForce")),
          element("span.soft", {}, provider.authenticated ? (provider.kind === "loopback" ? text("noKeyNeeded") : text("keySet")) : text("keyMissing")),
        ),
        provider.warning && element("p.warn", {}, provider.warning),
        provider.models.length > 0 && element("p", {}, provider.models.map((name) => element("code.chip", {}, name))),
        provider.kind !== "loopback" &&
          form(
            text("saveKey"),
            [field(text("newKey"), { name: "api_key", type: "password", required: true, autocomplete: "new-password" })],
            async (read) => {
              await gateway.call("model.save_key", { profile, slug: provider.slug, api_key: read("api_key") });
              await again();
            },
            { about: provider.slug },
          ),
        element(
          "div.choices",
          {},
          check,
          provider.kind !== "loopback" &&
            provider.authenticated &&
            provider.key_env &&
            form(
              text("forgetKey"),
              [],
              async () => {
                if (!confirm(text("forgetKeySure", { name: provider.slug }))) return "";
                await gateway.call("model.disconnect", { profile, slug: provider.slug });
                await again();
              },
              { danger: true, about: provider.slug },
            ),
        ),
        answer,
      );
    }),
    element("h3", {}, text("newProvider")),
    form(
      text("add"),
      [
        field(text("name"), { name: "slug", required: true }),
        field(text("address"), { name: "base_url", required: true, placeholder: "http://127.0.0.1:11434/v1", inputmode: "url" }),
        field(text("newKey"), { name: "api_key", type: "password", required: true, autocomplete: "new-password" }),
      ],
      async (read) => {
        await gateway.call("model.save_key", { profile, slug: read("slug"), api_key: read("api_key"), base_url: read("base_url") });
        await again();
      },
    ),
  ];
}

/** @type {import("./manage.js").Tab} */
export async function secretsTab({ gateway, profile, again }) {
  const { names, plain } = await gateway.call("secrets.names", { profile });
  return [
    element("p.soft", {}, text("secretsWhat")),
    names.length
      ? element(
          "ul.secrets",
          { "aria-label": text("secretNow") },
          names.map((name) =>
            element(
              "li",
              { "data-secret": name },
              element("code", {}, name),
              plain.includes(name) ? element("span.badge", {}, text("plainSecret")) : element("span.soft", { "aria-hidden": "true" }, "••••••••"),
              form(
                text("delete"),
                [],
                async () => {
                  if (!confirm(text("deleteSecretSure", { name }))) return "";
                  await gateway.call("secrets.set", { profile, name, value: null });
                  await again();
                },
                { danger: true, about: name },
              ),
            ),
          ),
        )
      : element("p.empty", {}, text("noSecrets")),
    element("h3", {}, text("setSecret")),
    form(
      text("save"),
      [
        field(text("secretName"), { name: "name", required: true, placeholder: "MY_KEY", autocapitalize: "characters" }),
        field(text("secretValue"), { name: "value", type: "password", required: true, autocomplete: "new-password" }),
      ],
      async (read) => {
        const done = await gateway.call("secrets.set", { profile, name: read("name"), value: read("value") });
        setTimeout(again);
        return text("secretSaved", { name: done.name });
      },
      { primary: true, again: true },
    ),
  ];
}
