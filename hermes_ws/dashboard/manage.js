// The dialog for one profile and for the server: what is set, what runs, what it cost, who may come in.

import { element, hue, put } from "./dom.js";
import { said } from "./forms.js";
import { agentsTab } from "./manage_agents.js";
import { memoryTab, skillsTab, toolServersTab } from "./manage_known.js";
import { modelsTab, secretsTab } from "./manage_keys.js";
import { profileTab } from "./manage_profile.js";
import { schedulesTab } from "./manage_schedules.js";
import { processesTab, serverTab } from "./manage_server.js";
import { tokensTab } from "./manage_tokens.js";
import { usageTab } from "./manage_usage.js";
import { settingsTab } from "./settings.js";
import { text } from "./texts.js";

/**
 * @typedef {{gateway: import("./gateway.js").Gateway, profile: string, profiles: string[], session: string | null,
 *            again: () => Promise<void>, changed: (name: string) => void}} Subject */
/** @typedef {(subject: Subject) => Promise<(Node | string | false | null)[]>} Tab */

/** @type {Record<string, Record<string, Tab>>} */
const GROUPS = {
  ofProfile: { profile: profileTab, models: modelsTab, secrets: secretsTab, settings: settingsTab },
  ofAgents: { agents: agentsTab, skills: skillsTab, toolServers: toolServersTab, memory: memoryTab, schedules: schedulesTab },
  ofWork: { processes: processesTab, usage: usageTab },
  ofServer: { tokens: tokensTab, server: serverTab },
};

/** @type {Record<string, Tab>} */
const TABS = Object.assign({}, ...Object.values(GROUPS));

/** The right that changes what a panel shows; the others only show. What only those who may change it see at all is `HIDDEN`. */
const NEEDS = Object.freeze(
  /** @type {Record<string, string>} */ ({
    ...{ profile: "admin", models: "admin", secrets: "admin", settings: "admin", tokens: "admin" },
    ...{ agents: "control", toolServers: "control", memory: "control", schedules: "control" },
  }),
);
const HIDDEN = Object.freeze(["tokens"]);

/** Keys that lead from one tab to another, and how far. */
const STEPS = Object.freeze(/** @type {Record<string, number>} */ ({ ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Home: -Infinity, End: Infinity }));

/**
 * @param {import("./gateway.js").Gateway} gateway
 * @param {string[]} profiles
 * @param {string} profile
 * @param {string | null} session the open one, of this profile; tool servers are a session's own
 * @param {() => void} changed called when the list of profiles may have changed
 * @param {string} [begin] the tab to show first
 */
export function manage(gateway, profiles, profile, session, changed, begin = "profile") {
  const id = `manage-${crypto.randomUUID()}`;
  const body = element("div.tab", { role: "tabpanel", id: `${id}-panel`, tabindex: -1 });
  const problem = element("div.problem", { role: "alert" });
  const choice = /** @type {HTMLSelectElement} */ (
    element("select", { "aria-label": text("managed") }, profiles.map((name) => element("option", { value: name, selected: name === profile }, name)))
  );
  /** @type {Record<string, HTMLElement>} */
  const tabs = {};
  const may = (/** @type {string} */ name) => !NEEDS[name] || gateway.rights.has(NEEDS[name]);
  for (const name of Object.keys(TABS)) {
    if (HIDDEN.includes(name) && !may(name)) continue;
    tabs[name] = element("button", { type: "button", role: "tab", id: `${id}-${name}`, "aria-controls": body.id, tabindex: -1, onclick: () => show(name) }, text(name));
  }
  const list = element(
    "div.tabs",
    { role: "tablist", "aria-label": text("manage"), "aria-orientation": "vertical", onkeydown: (/** @type {KeyboardEvent} */ event) => walk(event) },
    Object.entries(GROUPS).flatMap(([group, names]) => [element("span.group-name", { role: "presentation" }, text(group)), ...Object.keys(names).flatMap((name) => tabs[name] ?? [])]),
  );
  const dialog = /** @type {HTMLDialogElement} */ (
    element(
      "dialog.manage",
      { "aria-label": text("manage") },
      element(
        "header",
        {},
        element("h2", {}, text("manage")),
        element("label.inline", {}, element("span", { "aria-hidden": "true" }, text("profile")), choice),
        element("button.close", { type: "button", "aria-label": text("close"), onclick: () => dialog.close() }, "×"),
      ),
      element("div.sheets", {}, list, element("div.sheet", {}, problem, body)),
    )
  );
  let open = begin;

  /** @param {string} name @param {boolean} [anew] whether another one is looked at, and not the same one again */
  async function show(name, anew = true) {
    open = name;
    dialog.style.setProperty("--hue", String(hue(choice.value)));
    for (const [each, tab] of Object.entries(tabs)) {
      tab.setAttribute("aria-selected", String(each === name));
      tab.tabIndex = each === name ? 0 : -1;
    }
    tabs[name].scrollIntoView({ block: "nearest", inline: "nearest" });
    body.setAttribute("aria-labelledby", `${id}-${name}`);
    put(problem);
    body.setAttribute("aria-busy", "true");
    if (anew) put(body, element("p.loading", {}, text("loading")));
    const subject = {
      gateway,
      profile: choice.value,
      profiles: [...choice.options].map((option) => option.value),
      session: choice.value === profile ? session : null,
      again: () => show(name, false),
      changed: (/** @type {string} */ next) => {
        changed();
        if (next !== choice.value) dialog.close();
        else offer();
      },
    };
    try {
      const shown = await TABS[name](subject);
      // Whoever went on to another tab meanwhile does not get this one.
      if (open !== name || choice.value !== subject.profile) return;
      const within = !anew && body.contains(document.activeElement);
      put(body, !may(name) && element("p.warn", {}, text("onlyLook")), ...shown);
      if (anew) body.scrollTop = 0;
      else if (within) body.focus();
    } catch (error) {
      if (open !== name || choice.value !== subject.profile) return;
      put(body);
      put(problem, element("p", {}, said(error)), element("button", { type: "button", onclick: () => show(name) }, text("tryAgain")));
    }
    body.removeAttribute("aria-busy");
  }

  /** Those that there are now, so that a profile that was just made can be gone on with. */
  async function offer() {
    const chosen = choice.value;
    const { profiles: rows } = await gateway.call("profiles.list", {});
    put(choice, rows.map(({ name }) => element("option", { value: name, selected: name === chosen }, name)));
  }

  /** @param {KeyboardEvent} event */
  function walk(event) {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const names = Object.keys(tabs);
    const at = Math.min(Math.max(names.indexOf(open) + step, 0), names.length - 1);
    show(names[at]);
    tabs[names[at]].focus();
  }

  // Whoever may not change something is not offered to: neither now nor in what is unfolded later.
  new MutationObserver(() => {
    if (may(open)) return;
    for (const form of body.querySelectorAll("form")) for (const each of form.elements) each.toggleAttribute("disabled", true);
  }).observe(body, { childList: true, subtree: true });
  choice.addEventListener("change", () => show(open));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  show(begin);
}
