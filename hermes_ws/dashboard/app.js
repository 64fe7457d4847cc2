// The page: sign in, connect, and put the parts together.

import { Asking } from "./asking.js";
import { element, put } from "./dom.js";
import { Gateway, Unknown } from "./gateway.js";
import { Inbox } from "./inbox.js";
import { Listing, PAGE, search, titled } from "./listing.js";
import { manage } from "./manage.js";
import { Notices } from "./notices.js";
import { Pane } from "./pane.js";
import { SessionList } from "./session_list.js";
import { forget, storedToken, useTicket } from "./signing_in.js";
import { Soon } from "./soon.js";
import { TEXTS, text } from "./texts.js";

/** Milliseconds between two looks at the list of sessions while the page is seen; changes are told in between. */
const LOOK_EVERY = 5000;

/** Conversations that fit side by side. */
const MOST_PANES = 3;

class Page {
  /** @param {string} token */
  constructor(token) {
    this.gateway = new Gateway(token);
    /** @type {Pane[]} */
    this.panes = [];
    this.list = new SessionList({
      open: (row, beside) => this.open(row, beside),
      filtered: () => this.filter(),
      search: (query) => this.search(query),
      older: () => this.look(true),
    });
    this.listing = new Listing(this.gateway);
    this.notices = new Notices();
    /** How many sessions the list is to hold; it grows when older ones are asked for. */
    this.wanted = PAGE;
    this.inbox = new Inbox(
      (id, result) => this.gateway.call("question.answer", { id, result }),
      (session_id, profile) => this.open({ session_id, profile }, false),
    );
    this.asking = new Asking(this.gateway, this.inbox, {
      title: (id) => {
        const row = this.list.rows.find((each) => each.session_id === id);
        return row ? (row.title ?? row.preview ?? "") : null;
      },
      fresh: ({ id, profile, session_id }) => this.notices.tell({ id, profile }, () => this.open({ session_id, profile }, false)),
    });
    this.state = element("p.connection", { role: "status", "aria-live": "polite" });
    this.profile = /** @type {HTMLSelectElement} */ (element("select", { "aria-label": text("newSessionIn") }));
    this.agent = /** @type {HTMLSelectElement} */ (element("select", { "aria-label": text("agentFor"), hidden: true }));
    this.profile.addEventListener("change", () => this.agents());
    this.count = element("span.count", { hidden: true });
    // On a phone there is room for the list or for a conversation.
    this.unfold = element("button.unfold", { type: "button", "aria-controls": "side", onclick: () => this.fold(!document.body.classList.contains("folded")) }, text("sessions"));
    this.workspace = element("main.workspace");
    this.codeStyles = new CSSStyleSheet();
    this.styles = "";
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, this.codeStyles];
    this.soon = new Soon(() => this.look().catch(() => undefined), 300);
  }

  start() {
    put(
      document.body,
      element(
        "nav.side",
        { "aria-label": text("sessions"), id: "side" },
        element("header.brand", {}, element("strong", {}, TEXTS.title), this.state, this.unfold),
        element(
          "div.new",
          {},
          this.profile,
          this.agent,
          element("button", { type: "button", onclick: () => this.create() }, text("newSession")),
        ),
        this.list.root,
        element(
          "footer",
          {},
          element("button.link", { type: "button", onclick: () => this.manage() }, text("manage")),
          element("button.link", { type: "button", onclick: () => this.theme() }, text("theme")),
          element("button.link", { type: "button", onclick: () => this.signOut() }, text("signOut")),
        ),
      ),
      this.workspace,
      element("aside.inbox", { "aria-label": text("inbox") }, element("h2", {}, text("inbox"), this.count, this.notices.button), this.inbox.list),
    );
    this.layout();
    this.inbox.addEventListener("count", (event) => this.badge(/** @type {CustomEvent} */ (event).detail));
    this.gateway.addEventListener("state", (event) => this.stands(/** @type {CustomEvent} */ (event).detail));
    this.gateway.addEventListener("ready", (event) => this.ready(/** @type {CustomEvent} */ (event).detail));
    this.gateway.addEventListener("event", (event) => this.take(/** @type {CustomEvent} */ (event).detail));
    this.gateway.addEventListener("question", (event) => this.asking.take(/** @type {CustomEvent} */ (event).detail));
    document.addEventListener("visibilitychange", () => document.hidden || this.look());
    setInterval(() => document.hidden || this.look(), LOOK_EVERY);
    this.gateway.open();
  }

  // --- connection ----------------------------------------------------------------------------------------------------

  /** @param {string} state */
  stands(state) {
    if (state === "signed out") {
      forget();
      return showSignIn(text("signInHow"));
    }
    if (state === "connecting") this.inbox.renew();
    document.body.dataset.connection = state;
    put(this.state, text(state));
  }

  /** @param {{ready: any, restarted: boolean}} told */
  async ready({ ready, restarted }) {
    this.listing.forget();
    this.offer(ready.profiles);
    if (this.panes.length) put(this.state, text("catchingUp"));
    await this.look();
    this.inbox.renewed();
    this.asking.soon.ask();
    await Promise.all(this.panes.map((pane) => pane.resume().catch((/** @type {Error} */ error) => pane.problem(error.message))));
    put(this.state, text(restarted ? "restarted" : "connected"));
  }

  /** @param {any} event */
  take(event) {
    if (event.type === "request.cancel") this.asking.settled(event.payload.id, event.payload.reason);
    if (event.type === "request.settled") this.asking.settled(event.payload.id, event.payload.state);
    if (event.type === "profiles.changed") this.profiles();
    if (event.type === "sessions.changed" || event.type.startsWith("execution.")) {
      const changed = event.payload.session_id ?? event.session_id;
      this.asking.soon.ask();
      if (changed) this.listing.touched.add(changed);
      else this.listing.forget();
      this.lookSoon();
    }
    for (const pane of this.panes) if (pane.sessionId === event.session_id) pane.take(event);
  }

  // --- sessions ------------------------------------------------------------------------------------------------------

  /** @param {boolean} [further] whether older ones than are known are wanted */
  async look(further = false) {
    if (!this.gateway.up) return;
    if (further) this.wanted = this.list.rows.length + PAGE;
    const { filter } = this.list;
    const { rows, more } = await this.listing.look(filter, this.wanted);
    if (filter === this.list.filter) this.list.set(rows, more);
  }

  /** In titles and in messages. @param {string} query */
  async search(query) {
    const profiles = [...this.profile.options].map((option) => option.value);
    const [rows, hits] = await Promise.all([titled(this.gateway, this.list.filter, query), search(this.gateway, profiles, query)]);
    return { titled: rows, hits };
  }

  async filter() {
    this.wanted = PAGE;
    await this.look();
  }

  lookSoon() {
    this.soon.ask();
  }

  async create() {
    const created = await this.gateway.call("session.create", {
      profile: this.profile.value,
      request_id: crypto.randomUUID(),
      source: "dashboard",
      // What files were is kept, so that what changed can be shown and put back.
      checkpoints: true,
      ...(this.agent.value ? { agent: this.agent.value } : {}),
      subscribe: false,
    });
    await this.open({ session_id: created.session_id, profile: created.profile }, false);
    this.lookSoon();
  }

  /** @param {{session_id: string, profile: string, thread_id?: string}} session @param {boolean} beside */
  async open(session, beside) {
    const thread = session.thread_id ?? "main";
    const known = this.panes.find((pane) => pane.sessionId === session.session_id && pane.conversation.threadId === thread);
    if (known) return known.input.focus();
    const pane = new Pane(this.gateway, session, (markdown) => this.render(markdown), {
      close: (each) => this.close(each),
      open: (session_id, profile, thread_id) => this.open({ session_id, profile, thread_id }, true),
      changed: () => this.lookSoon(),
    });
    if (!beside) for (const each of [...this.panes]) this.close(each, false);
    while (this.panes.length >= MOST_PANES) this.close(this.panes[0], false);
    this.panes.push(pane);
    this.layout();
    pane.input.focus();
    try {
      await pane.resume();
    } catch (error) {
      pane.problem(/** @type {Error} */ (error).message);
    }
  }

  /** @param {boolean} folded whether, where there is little room, the conversation has it instead of the list */
  fold(folded) {
    document.body.classList.toggle("folded", folded);
    this.unfold.setAttribute("aria-expanded", String(!folded));
  }

  /** @param {Pane} pane @param {boolean} [redraw] */
  close(pane, redraw = true) {
    this.panes = this.panes.filter((each) => each !== pane);
    pane.end();
    if (redraw) this.layout();
  }

  layout() {
    const [first] = this.panes;
    document.body.dataset.profile = first?.conversation.profile ?? "";
    put(this.workspace, this.panes.length ? this.panes.map((pane) => pane.root) : element("p.empty", {}, text("pickSession")));
    this.fold(this.panes.length > 0);
    for (const pane of this.panes) this.waits(pane);
    this.entitle();
    this.list.current = new Set(this.panes.map((pane) => pane.sessionId));
    this.list.draw();
  }

  /** Markdown, rendered and made harmless by the server. @param {string} markdown */
  async render(markdown) {
    try {
      const { html, styles, dark_styles: dark } = await this.gateway.call("render.markdown", { text: markdown });
      // They are the same for every text; setting them makes the browser go through all that is shown.
      if (styles !== this.styles) {
        this.styles = styles;
        const system = `@media (prefers-color-scheme: dark) { :root:not([data-theme="light"]) { ${dark} } }`;
        this.codeStyles.replaceSync(`${styles}\n:root[data-theme="dark"] { ${dark} }\n${system}`);
      }
      const parsed = new DOMParser().parseFromString(html, "text/html");
      const fragment = document.createDocumentFragment();
      fragment.append(...parsed.body.childNodes);
      return fragment;
    } catch {
      return null;
    }
  }

  // --- the rest ------------------------------------------------------------------------------------------------------

  /** @param {number} count */
  badge(count) {
    this.count.toggleAttribute("hidden", count === 0);
    put(this.count, String(count));
    for (const pane of this.panes) this.waits(pane);
    this.entitle();
  }

  /** Whether a session waits for an answer; what is only asked for in passing holds nothing up. @param {Pane} pane */
  waits(pane) {
    const held = [...this.inbox.questions.values()].some(({ kind, params }) => kind !== "connection" && params.session_id === pane.sessionId);
    pane.waits(held);
  }

  /** What the tab of the browser says: how many questions wait, and which profile one is in. */
  entitle() {
    const count = this.inbox.questions.size;
    const [pane] = this.panes;
    document.title = `${count ? `(${count}) ` : ""}${pane ? `${pane.conversation.profile} · ` : ""}${TEXTS.title}`;
  }

  manage() {
    const names = [...this.profile.options].map((option) => option.value);
    const [pane] = this.panes;
    manage(this.gateway, names, pane?.conversation.profile ?? this.profile.value, pane?.sessionId ?? null, () => this.profiles());
  }

  async profiles() {
    const { profiles } = await this.gateway.call("profiles.list", {});
    this.offer(profiles.map((/** @type {any} */ row) => row.name));
    this.lookSoon();
  }

  /** @param {string[]} names */
  offer(names) {
    const chosen = this.profile.value;
    put(this.profile, names.map((name) => element("option", { value: name, selected: name === chosen }, name)));
    this.agents().catch(() => undefined);
  }

  /** The agents of the chosen profile, where there is a choice. */
  async agents() {
    const profile = this.profile.value;
    const { agents } = await this.gateway.call("agent.list", { profile });
    if (profile !== this.profile.value) return;
    this.agent.toggleAttribute("hidden", agents.length < 2);
    put(this.agent, agents.map((row) => element("option", { value: agents.length < 2 ? "" : row.name, title: row.description }, row.name)));
  }

  theme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("hermes-ws.theme", root.dataset.theme);
  }

  signOut() {
    this.gateway.close();
    forget();
    showSignIn(text("signInHow"));
  }
}

/** @param {string} why */
function showSignIn(why) {
  put(
    document.body,
    element(
      "main.sign-in",
      {},
      element("h1", {}, TEXTS.title),
      element("p", { role: "status" }, why),
      element("pre", {}, element("code", {}, text("signInCommand"))),
    ),
  );
}

// A reply that will not come is told by the state of the connection: who only looked has nothing more to say.
addEventListener("unhandledrejection", (event) => event.reason instanceof Unknown && event.preventDefault());

document.documentElement.dataset.theme = localStorage.getItem("hermes-ws.theme") ?? "";
const outcome = await useTicket();
const token = storedToken();
if (token) new Page(token).start();
else showSignIn(text(outcome === "refused" ? "ticketUsed" : "signInHow"));
