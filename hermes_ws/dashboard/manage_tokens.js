// Who else may come in: tokens, each with its profiles and rights. A token is shown once, when it is made.

import { element, put } from "./dom.js";
import { choice, field, form, ticks } from "./forms.js";
import { moment } from "./numbers.js";
import { text } from "./texts.js";

const RIGHTS = /** @type {const} */ (["observe", "submit", "answer", "control", "terminal", "admin"]);

/** @type {import("./manage.js").Tab} */
export async function tokensTab({ gateway, profiles }) {
  const once = element("div.once", { role: "status" });
  const list = element("div.cards");
  const draw = async () => {
    const { tokens } = await gateway.call("token.list", {});
    put(list, ...(tokens.length ? tokens.map((token) => card(token)) : [element("p.empty", {}, text("noTokens"))]));
  };
  /** @param {import("../../clients/typescript/src/contract.ts").TokenRow} token */
  const card = (token) =>
    element(
      "section.card",
      { "data-token": token.token_id },
      element("h3", {}, token.name, element("span.badge", {}, text(`token.${token.kind}`))),
      element("p", {}, token.rights.map((right) => element("span.chip", {}, text(`right.${right}`)))),
      element("p.soft", {}, `${text("profiles")}: ${token.profiles?.join(", ") ?? text("allProfiles")}`),
      element("p.soft", {}, `${text("made")} ${moment(token.created_at)}`, token.expires_at ? ` · ${text("until")} ${moment(token.expires_at)}` : ` · ${text("noEnd")}`),
      form(
        text("revoke"),
        [],
        async () => {
          if (!confirm(text("revokeSure", { name: token.name }))) return "";
          await gateway.call("token.revoke", { token_id: token.token_id });
          await draw();
        },
        { danger: true, about: token.name },
      ),
    );
  await draw();
  return [
    element("p.soft", {}, text("tokensWhat")),
    once,
    list,
    element("h3", {}, text("newToken")),
    form(
      text("create"),
      [
        field(text("name"), { name: "name", required: true, placeholder: "laptop" }),
        choice(text("holds"), "days", [["", text("noEnd")], ["1", text("days", { n: "1" })], ["30", text("days", { n: "30" })], ["365", text("days", { n: "365" })]], "30"),
        ticks(text("rights"), "rights", RIGHTS.map((right) => [right, text(`right.${right}`)]), ["observe"]),
        ticks(text("profilesNone"), "profiles", profiles.map((name) => [name, name]), []),
      ],
      async (read, data) => {
        const chosen = data.getAll("profiles").map(String);
        const made = await gateway.call("token.create", {
          name: read("name"),
          rights: /** @type {(typeof RIGHTS)[number][]} */ (data.getAll("rights").map(String)),
          ...(chosen.length ? { profiles: chosen } : {}),
          ...(read("days") ? { expires_in_s: Number(read("days")) * 86_400 } : {}),
        });
        const copy = element("button", { type: "button", onclick: () => navigator.clipboard.writeText(made.token).then(() => put(copy, text("copied"))) }, text("copy"));
        put(once, element("div.card.own", {}, element("p", {}, text("tokenOnce", { name: made.name })), element("code.token", {}, made.token), copy));
        await draw();
        return "";
      },
      { primary: true, again: true },
    ),
  ];
}
