// The agents of a profile: what they are told, and with what they work. A definition is a text that is edited here.

import { element, put } from "./dom.js";
import { area, field, form } from "./forms.js";
import { text } from "./texts.js";

/** @type {import("./manage.js").Tab} */
export async function agentsTab({ gateway, profile, again }) {
  const { agents } = await gateway.call("agent.list", { profile });
  return [
    element("p.soft", {}, text("agentsWhat")),
    ...agents.map((row) => {
      const body = element("div.cards");
      const card = element(
        "details.card",
        { "data-agent": row.name },
        element("summary", {}, element("strong", {}, row.name), element("span.soft", { dir: "auto" }, row.description), row.model && element("code.chip", {}, row.model)),
        row.problem && element("p.problem", {}, row.problem),
        body,
      );
      card.addEventListener("toggle", async () => {
        if (!card.hasAttribute("open") || body.childElementCount) return;
        try {
          const known = row.problem ? null : await gateway.call("agent.get", { profile, name: row.name });
          put(body, ...editing(known));
        } catch (error) {
          put(body, element("p.problem", { role: "alert" }, /** @type {Error} */ (error).message));
        }
      });
      /** @param {import("../../clients/typescript/src/contract.ts").Agent | null} known */
      const editing = (known) => [
        known && element("p.soft", {}, text("toolsets"), " ", known.toolsets ? known.toolsets.map((name) => element("code.chip", {}, name)) : text("asProfile")),
        form(
          text("save"),
          [area(text("definition"), { name: "text", rows: 12, required: true, spellcheck: "false" }, known?.text || TEMPLATE(row.name, row.description))],
          async (read) => {
            await gateway.call("agent.put", { profile, name: row.name, text: read("text") });
            await again();
          },
          { primary: true, about: row.name },
        ),
        form(
          text("delete"),
          [],
          async () => {
            if (!confirm(text("deleteAgentSure", { name: row.name }))) return "";
            await gateway.call("agent.delete", { profile, name: row.name });
            await again();
          },
          { danger: true, about: row.name },
        ),
      ];
      return card;
    }),
    element("h3", {}, text("newAgent")),
    form(
      text("create"),
      [
        field(text("name"), { name: "name", required: true }),
        field(text("agentWhatFor"), { name: "description", dir: "auto" }),
        area(text("instructions"), { name: "instructions", required: true }),
      ],
      async (read) => {
        await gateway.call("agent.put", { profile, name: read("name"), text: `${head(read("name"), read("description"))}${read("instructions")}\n` });
        await again();
      },
      { primary: true },
    ),
  ];
}

/** What the front matter begins with; JSON text is YAML text. @param {string} name @param {string} description */
function head(name, description) {
  return `---\nname: ${JSON.stringify(name)}\ndescription: ${JSON.stringify(description)}\n---\n`;
}

/** What stands where nothing was written yet. @param {string} name @param {string} description */
const TEMPLATE = (name, description) => head(name, description);
