// The dialog for one profile and for the server: what is set, what runs, what it cost, who may come in.

import { element, hue, put } from "./dom.js";
import { memoryTab, schedulesTab, skillsTab, toolServersTab } from "./manage_agent.js";
import { profileTab, secretsTab, settingsTab, modelsTab } from "./manage_profile.js";
import { processesTab, serverTab, tokensTab, usageTab } from "./manage_server.js";
import { text } from "./texts.js";

/**
 * @typedef {{gateway: import("./gateway.js").Gateway, profile: string, session: string | null,
 *            again: () => void, changed: (name: string) => void}} Subject */
/** @typedef {(subject: Subject) => Promise<(Node | string | false | null)[]>} Tab */

/** @type {Record<string, Tab>} */
const TABS = {
  profile: profileTab,
  models: modelsTab,
  secrets: secretsTab,
  settings: settingsTab,
  skills: skillsTab,
  toolServers: toolServersTab,
  memory: memoryTab,
  schedules: schedulesTab,
  processes: processesTab,
  usage: usageTab,
  tokens: tokensTab,
  server: serverTab,
};

/**
 * @param {import("./gateway.js").Gateway} gateway
 * @param {string[]} profiles
 * @param {string} profile
 * @param {string | null} session the open one, of this profile; tool servers are a session's own
 * @param {() => void} changed called when the list of profiles may have changed
 */
export function manage(gateway, profiles, profile, session, changed) {
  const body = element("div.tab", { role: "tabpanel" });
  const problem = element("p.problem", { role: "alert" });
  const choice = /** @type {HTMLSelectElement} */ (
    element("select", { "aria-label": text("profile") }, profiles.map((name) => element("option", { value: name, selected: name === profile }, name)))
  );
  const tabs = Object.keys(TABS).map((name) => element("button", { type: "button", role: "tab", onclick: () => show(name) }, text(name)));
  const dialog = /** @type {HTMLDialogElement} */ (
    element(
      "dialog.manage",
      { "aria-label": text("manage") },
      element("header", {}, choice, element("button.close", { type: "button", "aria-label": text("close"), onclick: () => dialog.close() }, "×")),
      element("div.tabs", { role: "tablist" }, tabs),
      problem,
      body,
    )
  );
  let open = "profile";

  /** @param {string} name */
  async function show(name) {
    open = name;
    dialog.style.setProperty("--hue", String(hue(choice.value)));
    Object.keys(TABS).forEach((each, index) => tabs[index]?.setAttribute("aria-selected", String(each === name)));
    put(problem);
    try {
      const subject = {
        gateway,
        profile: choice.value,
        session: choice.value === profile ? session : null,
        again: () => show(name),
        changed: (/** @type {string} */ next) => {
          changed();
          if (next !== choice.value) dialog.close();
        },
      };
      const shown = await TABS[name](subject);
      // Whoever went on to another tab meanwhile does not get this one.
      if (open === name && choice.value === subject.profile) put(body, ...shown);
    } catch (error) {
      put(body);
      put(problem, `${/** @type {Error} */ (error).message} ${/** @type {any} */ (error).hint ?? ""}`);
    }
  }

  choice.addEventListener("change", () => show(open));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  show("profile");
}
