// One open conversation: which profile one is in, the transcript, and the composer with its draft.

import { Conversation } from "./conversation.js";
import { element, hue, put } from "./dom.js";
import { mutate } from "./edits.js";
import { text } from "./texts.js";
import { Transcript } from "./transcript.js";

/** Where half-written messages wait, by session: a draft belongs to its session and to no other. */
const DRAFTS = "hermes-ws.draft.";

export class Pane {
  /**
   * @param {import("./gateway.js").Gateway} gateway
   * @param {{session_id: string, profile: string}} session
   * @param {(markdown: string) => Promise<DocumentFragment | null>} render
   * @param {{close: (pane: Pane) => void, open: (sessionId: string, profile: string) => void, changed: () => void}} page
   */
  constructor(gateway, session, render, page) {
    this.gateway = gateway;
    this.page = page;
    /** @type {{said: string, id: string} | null} */
    this.sending = null;
    this.conversation = new Conversation(session.session_id, session.profile);
    this.transcript = new Transcript(this.conversation, render, {
      edit: (item) => this.edit(item),
      branch: (item) => this.branch(item),
    });
    this.title = element("h1", { dir: "auto" }, text("untitled"));
    this.state = element("span.state", { role: "status" });
    this.problem = element("p.problem", { role: "alert" });
    this.input = /** @type {HTMLTextAreaElement} */ (
      element("textarea", { rows: "2", dir: "auto", placeholder: text("say"), "aria-label": `${text("saying")} ${session.profile}` })
    );
    this.input.value = localStorage.getItem(DRAFTS + session.session_id) ?? "";
    this.input.addEventListener("input", () => localStorage.setItem(DRAFTS + session.session_id, this.input.value));
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.submit();
      }
    });
    this.steer = element("button.steer", { type: "button", hidden: true, onclick: () => this.guide() }, text("steer"));
    this.stop = element("button.stop", { type: "button", hidden: true, onclick: () => this.interrupt() }, text("stop"));
    this.queue = element("ul.queue", { "aria-label": text("queued") });
    const form = element("form.composer", {}, this.input, element("div.actions", {}, this.stop, this.steer, element("button.send", { type: "submit" }, text("send"))));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.root = element(
      "section.pane",
      { hue: hue(session.profile), "aria-label": session.profile, "data-session": session.session_id },
      element(
        "header.banner",
        {},
        element("span.profile", {}, session.profile),
        this.title,
        this.state,
        this.menu(),
        element("button.close", { type: "button", "aria-label": text("closePane"), onclick: () => page.close(this) }, "×"),
      ),
      this.transcript.scroller,
      this.queue,
      this.problem,
      form,
    );
    this.conversation.addEventListener("change", () => this.draw());
  }

  get sessionId() {
    return this.conversation.sessionId;
  }

  /**
   * Take the snapshot and listen from it; after a lost connection, from where the page stands.
   * @returns {Promise<any>}
   */
  async resume() {
    const after = this.conversation.cursor;
    const params = { session_id: this.sessionId, profile: this.conversation.profile };
    const snapshot = await this.gateway.call("session.resume", after ? { ...params, after } : { ...params, messages: true });
    if (snapshot.position !== "ok" && after) {
      this.conversation.cursor = null;
      return this.resume();
    }
    this.conversation.begin(snapshot);
    return snapshot;
  }

  draw() {
    const { info, execution, pending } = this.conversation;
    const running = execution !== null;
    put(this.title, info.title ?? text("untitled"));
    this.root.classList.toggle("running", running);
    this.stop.toggleAttribute("hidden", !running);
    this.steer.toggleAttribute("hidden", !running);
    put(this.state, running ? text("running") : "");
    put(
      this.queue,
      pending
        .filter((row) => row.status === "queued" || row.status === "unknown")
        .map((row) => {
          const lost = row.status === "unknown";
          const act = () => (lost ? this.acknowledge(row) : this.withdraw(row));
          const button = element("button.link", { type: "button", onclick: act }, text(lost ? "resolve" : "cancelQueued"));
          return element(`li.${row.status}`, { dir: "auto" }, lost ? text("lostExecution") : row.text, " ", button);
        }),
    );
  }

  async submit() {
    const said = this.input.value.trim();
    if (!said) return;
    put(this.problem);
    // One id for one message: sent again after a lost reply, it is admitted once.
    this.sending = this.sending?.said === said ? this.sending : { said, id: crypto.randomUUID() };
    const { id } = this.sending;
    try {
      await this.gateway.call("prompt.submit", { session_id: this.sessionId, input_id: id, text: said });
      this.sending = null;
      if (this.input.value.trim() === said) this.input.value = "";
      localStorage.setItem(DRAFTS + this.sessionId, this.input.value);
    } catch (error) {
      put(this.problem, `${/** @type {Error} */ (error).message} ${/** @type {any} */ (error).hint ?? ""}`);
    }
  }

  async interrupt() {
    const generation = this.conversation.execution?.execution_generation;
    if (generation === undefined) return;
    try {
      await this.gateway.call("session.interrupt", { session_id: this.sessionId, execution_generation: generation });
    } catch (error) {
      put(this.problem, String(/** @type {Error} */ (error).message));
    }
  }

  // --- the session itself ----------------------------------------------------------------------------------------------

  menu() {
    const pick = (/** @type {string} */ label, /** @type {() => void} */ act) =>
      element(
        "button",
        {
          type: "button",
          onclick: () => {
            details.removeAttribute("open");
            act();
          },
        },
        text(label),
      );
    const details = element(
      "details.menu",
      {},
      element("summary", { "aria-label": text("actions") }, "⋯"),
      element(
        "div",
        {},
        pick("rename", () => {
          const title = prompt(text("newTitle"), this.conversation.info.title ?? "");
          if (title !== null) this.change("rename", { title: title.trim() || null });
        }),
        pick("pin", () => this.change("pin", { pinned: true })),
        pick("unpin", () => this.change("pin", { pinned: false })),
        pick("archive", () => this.change("archive", { archived: true })),
        pick("unarchive", () => this.change("archive", { archived: false })),
        pick("removeSession", async () => {
          if ((await this.change("delete", {}, () => confirm(text("removeSure")))) !== null) this.page.close(this);
        }),
      ),
    );
    return details;
  }

  /**
   * @param {string} operation
   * @param {Record<string, any>} payload
   * @param {(message: string) => boolean} [agrees]
   */
  async change(operation, payload, agrees = (message) => confirm(message)) {
    put(this.problem);
    try {
      const { revision, generation } = this.conversation;
      const session = { session_id: this.sessionId, revision, ...(FENCED.has(operation) && generation ? { generation } : {}) };
      const changed = await mutate(this.gateway, session, operation, payload, agrees);
      if (changed) this.conversation.revision = changed.revision;
      this.page.changed();
      return changed;
    } catch (error) {
      put(this.problem, `${/** @type {Error} */ (error).message} ${/** @type {any} */ (error).hint ?? ""}`);
      return null;
    }
  }

  /** Take back a message of the user's and all after it, and put its text into the composer. @param {any} item */
  async edit(item) {
    const taken = await this.change("rewind", { message_id: item.id }, () => confirm(text("editSure")));
    if (taken) {
      this.input.value = taken.result.text ?? item.text;
      this.input.focus();
    }
  }

  /** @param {any} item */
  async branch(item) {
    const made = await this.change("branch", { through_message_id: item.id });
    if (made) this.page.open(made.result.session_id, this.conversation.profile);
  }

  async guide() {
    const said = this.input.value.trim();
    const generation = this.conversation.execution?.execution_generation;
    if (!said || generation === undefined) return;
    try {
      await this.gateway.call("session.steer", { session_id: this.sessionId, execution_generation: generation, text: said });
      this.input.value = "";
      localStorage.removeItem(DRAFTS + this.sessionId);
    } catch (error) {
      put(this.problem, String(/** @type {Error} */ (error).message));
    }
  }

  /** @param {any} row */
  async withdraw(row) {
    await this.gateway.call("prompt.cancel", { session_id: this.sessionId, admission_id: row.admission_id });
    await this.refresh();
  }

  /** @param {any} row */
  async acknowledge(row) {
    await this.gateway.call("prompt.resolve_unknown", {
      session_id: this.sessionId,
      admission_id: row.admission_id,
      execution_generation: row.execution_generation,
    });
    await this.refresh();
  }

  async refresh() {
    const state = await this.gateway.call("thread.state", { session_id: this.sessionId });
    this.conversation.pending = state.pending;
    this.draw();
  }
}

/** Operations that take the execution generation as well, since they change the conversation. */
const FENCED = new Set(["rewind", "reset", "branch", "delete"]);
