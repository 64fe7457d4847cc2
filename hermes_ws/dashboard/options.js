// Which model and agent a session has, and what it has consumed.

import { element, put } from "./dom.js";
import { text } from "./texts.js";

export class Options {
  /** @param {import("./gateway.js").Gateway} gateway @param {import("./pane.js").Pane} pane */
  constructor(gateway, pane) {
    this.gateway = gateway;
    this.pane = pane;
    this.summary = element("summary", { "aria-label": text("model") });
    this.body = element("div.options", {});
    this.root = element("details.menu.model", {}, this.summary, this.body);
    this.meter = element("p.meter", { dir: "auto", "aria-label": text("consumed") });
    /** @type {{total_tokens: number, cost_usd: number | null} | null} */
    this.usage = null;
    this.root.addEventListener("toggle", () => this.root.hasAttribute("open") && pane.attempt(() => this.offer()));
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.root.removeAttribute("open");
      this.summary.focus();
    });
  }

  /** What the session has consumed until now. */
  async look() {
    try {
      const { sessionId: session_id, profile } = this.pane.conversation;
      this.usage = await this.gateway.call("session.usage", { session_id, profile });
      this.draw();
    } catch {
      // The next end of an execution looks again.
    }
  }

  draw() {
    const { info, context } = this.pane.conversation;
    put(this.summary, info.model ?? "", info.agent && info.agent !== "default" ? ` · ${info.agent}` : "");
    const parts = [];
    if (context) parts.push(`${Math.round((100 * context.tokens) / context.limit)} % ${text("ofContext")}`);
    if (this.usage?.total_tokens) parts.push(`${this.usage.total_tokens.toLocaleString()} ${text("tokensUsed")}`);
    if (this.usage?.cost_usd) parts.push(`$${this.usage.cost_usd.toFixed(this.usage.cost_usd < 1 ? 4 : 2)}`);
    put(this.meter, parts.join(" · "));
  }

  /** A model that the profile's files do not name: its provider may know many. @param {string[]} slugs */
  another(slugs) {
    const { profile, info } = this.pane.conversation;
    const known = element("datalist", { id: `models-${crypto.randomUUID()}` });
    const provider = /** @type {HTMLSelectElement} */ (
      element("select", { "aria-label": text("provider") }, slugs.map((slug) => element("option", { value: slug, selected: slug === info.provider }, slug)))
    );
    const name = /** @type {HTMLInputElement} */ (element("input", { required: true, list: known.id, autocomplete: "off", spellcheck: "false", "aria-label": text("modelName"), placeholder: text("modelName") }));
    const said = element("p.soft", { role: "status" });
    const ask = async () => {
      put(said, text("asking"));
      const told = await this.gateway.call("model.check", { profile, slug: provider.value });
      put(known, told.models.map((model) => element("option", { value: model })));
      put(said, told.ok ? `${told.models.length} ${text("modelsKnown")}` : `${told.error ?? ""} ${told.hint ?? ""}`);
    };
    return element(
      "details.another",
      {},
      element("summary", {}, text("anotherModel")),
      element(
        "form",
        {
          onsubmit: async (/** @type {Event} */ event) => {
            event.preventDefault();
            const done = await this.pane.change("model", { provider: provider.value, model: name.value.trim() });
            if (done) this.root.removeAttribute("open");
          },
        },
        provider,
        name,
        known,
        element("div.choices", {}, element("button", { type: "button", onclick: () => this.pane.attempt(ask) }, text("whichModels")), element("button", { type: "submit" }, text("useModel"))),
        said,
      ),
    );
  }

  async offer() {
    const { sessionId: session_id, profile, info } = this.pane.conversation;
    const { providers } = await this.gateway.call("model.options", { profile, session_id });
    const current = `${info.provider}/${info.model}`;
    const select = /** @type {HTMLSelectElement} */ (
      element(
        "select",
        { name: "model" },
        providers.map((provider) =>
          element(
            "optgroup",
            { label: provider.name + (provider.authenticated ? "" : ` (${text("keyMissing")})`) },
            [...new Set([...provider.models, ...(provider.slug === info.provider ? [info.model] : [])])].map((name) =>
              element("option", { value: JSON.stringify([provider.slug, name]), selected: `${provider.slug}/${name}` === current }, name),
            ),
          ),
        ),
      )
    );
    select.addEventListener("change", async () => {
      const [provider, model] = JSON.parse(select.value);
      const done = await this.pane.change("model", { provider, model });
      if (done) this.root.removeAttribute("open");
    });
    put(
      this.body,
      element("label", {}, text("modelFromNow"), select),
      this.another(providers.map((provider) => provider.slug)),
      element("dl", {}, [text("agentNow"), info.agent, text("directory"), info.cwd].map((each, index) => element(index % 2 ? "dd" : "dt", { dir: "auto" }, String(each ?? "")))),
    );
  }
}
