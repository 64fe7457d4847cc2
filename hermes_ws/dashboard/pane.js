// One open conversation: which profile one is in, the transcript, and the composer with its draft.

import { get as getBlob } from "./blobs.js";
import { Changes } from "./changes.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { element, hue, put } from "./dom.js";
import { mutate } from "./edits.js";
import { Options } from "./options.js";
import { Processes } from "./processes.js";
import { sessionMenu } from "./session_menu.js";
import { Subagents } from "./subagents.js";
import { Terminals } from "./terminals.js";
import { text } from "./texts.js";
import { Transcript } from "./transcript.js";

/** Messages of one look further back. */
const PAGE = 100;

export class Pane {
  /**
   * @param {import("./gateway.js").Gateway} gateway
   * @param {{session_id: string, profile: string, thread_id?: string}} session
   * @param {(markdown: string) => Promise<DocumentFragment | null>} render
   * @param {{close: (pane: Pane) => void, open: (sessionId: string, profile: string, threadId?: string) => void, changed: () => void}} page
   */
  constructor(gateway, session, render, page) {
    this.gateway = gateway;
    this.page = page;
    this.conversation = new Conversation(session.session_id, session.profile, session.thread_id);
    this.transcript = new Transcript(this.conversation, render, {
      edit: (item) => this.edit(item),
      branch: (item) => this.branch(item),
      earlier: () => this.attempt(() => this.earlier()),
      content: (blob, type) => getBlob(gateway, session.profile, blob, type),
    });
    this.title = element("h1", { dir: "auto" }, text("untitled"));
    this.state = element("span.state", { role: "status" });
    this.trouble = element("p.problem", { role: "alert" });
    this.composer = new Composer(gateway, this.conversation, {
      problem: (said) => this.problem(said),
      stop: () => this.interrupt(),
      say: (said) => this.note(said),
    });
    this.input = this.composer.input;
    this.queue = element("ul.queue", { "aria-label": text("queued") });
    this.subagents = new Subagents(gateway, this.conversation, (thread) => page.open(this.sessionId, session.profile, thread));
    this.changes = new Changes(gateway, this.conversation);
    this.processes = new Processes(gateway, { profile: session.profile, session_id: session.session_id });
    this.terminals = new Terminals(gateway, this.conversation, () => this.input.focus());
    this.options = new Options(gateway, this);
    const main = this.conversation.threadId === "main";
    this.root = element(
      "section.pane",
      { hue: hue(session.profile), "aria-label": session.profile, "data-session": session.session_id, "data-thread": this.conversation.threadId },
      element(
        "header.banner",
        {},
        element("span.profile", {}, session.profile),
        this.title,
        this.state,
        main && this.terminals.button,
        main && this.options.root,
        main && sessionMenu(this),
        element("button.close", { type: "button", "aria-label": text("closePane"), onclick: () => page.close(this) }, "×"),
      ),
      this.transcript.scroller,
      main && this.subagents.root,
      main && this.processes.root,
      main && this.changes.root,
      this.queue,
      this.trouble,
      this.composer.root,
      main && this.options.meter,
      main && this.terminals.root,
    );
    this.waiting = false;
    this.queued = "";
    // At most once a frame, however many pieces come.
    this.frame = 0;
    this.conversation.addEventListener("change", () => {
      this.frame ||= requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
    });
  }

  get sessionId() {
    return this.conversation.sessionId;
  }

  /** @param {any} event an event of this session; other threads' tell only about subagents */
  take(event) {
    if (event.type.startsWith("terminal.")) return this.terminals.take(event);
    if (event.type.startsWith("subagent.") || event.type.startsWith("execution.")) this.subagents.lookSoon();
    if (event.thread_id !== undefined && event.thread_id !== this.conversation.threadId) return;
    this.conversation.apply(event);
    if (event.type === "execution.finished") {
      this.options.look();
      this.changes.lookSoon();
    }
  }

  /**
   * Take the snapshot and listen from it; after a lost connection, from where the page stands.
   * @returns {Promise<any>}
   */
  async resume() {
    const after = this.conversation.cursor;
    const { threadId: thread_id, profile } = this.conversation;
    const params = { session_id: this.sessionId, profile, ...(after ? { after } : { messages: true }) };
    const snapshot =
      thread_id === "main" ? await this.gateway.call("session.resume", params) : await this.gateway.call("thread.subscribe", { ...params, thread_id });
    if (snapshot.position !== "ok" && after) {
      this.conversation.cursor = null;
      return this.resume();
    }
    this.conversation.begin(snapshot);
    this.subagents.lookSoon();
    this.options.look();
    this.processes.soon.ask();
    this.changes.lookSoon();
    this.terminals.resume().catch(() => undefined);
    return snapshot;
  }

  async earlier() {
    const before = this.conversation.first();
    const { threadId: thread_id, profile } = this.conversation;
    const page = await this.gateway.call("thread.messages", { session_id: this.sessionId, profile, thread_id, before, limit: PAGE });
    this.conversation.prepend(page);
  }

  end() {
    this.composer.end();
    this.subagents.end();
    this.processes.end();
    this.changes.end();
    this.terminals.end();
    const { threadId: thread_id } = this.conversation;
    this.gateway.call("thread.unsubscribe", { session_id: this.sessionId, thread_id }).catch(() => undefined);
  }

  draw() {
    const { info, execution, pending, threadId } = this.conversation;
    const running = execution !== null;
    // Until it has a title it is called by its first words, as in the list.
    const title = info.title ?? (this.conversation.opening() || text("untitled"));
    put(this.title, threadId === "main" ? title : `${title} › ${text("subagent")}`);
    this.root.classList.toggle("running", running);
    this.composer.stands(running);
    this.state.classList.toggle("waiting", running && this.waiting);
    put(this.state, running ? text(this.waiting ? "waiting" : "running") : "");
    this.options.draw();
    const queued = JSON.stringify(pending);
    // Drawn when it changes, and not for each piece of text: what is about to be clicked stays where it is.
    if (queued === this.queued) return;
    this.queued = queued;
    put(
      this.queue,
      pending
        .filter((row) => row.status === "queued" || row.status === "unknown")
        .map((row) => {
          const lost = row.status === "unknown";
          const act = () => this.attempt(() => (lost ? this.acknowledge(row) : this.withdraw(row)));
          const button = element("button.link", { type: "button", onclick: act }, text(lost ? "resolve" : "cancelQueued"));
          return element(`li.${row.status}`, { dir: "auto" }, lost ? text("lostExecution") : row.text, " ", button);
        }),
    );
  }

  /** Whether its agent waits for an answer of this person. @param {boolean} waiting */
  waits(waiting) {
    if (this.waiting === waiting) return;
    this.waiting = waiting;
    this.root.classList.toggle("waiting", waiting);
    this.draw();
  }

  /** @param {string} said */
  problem(said) {
    put(this.trouble, said);
  }

  /** What a command said: shown here, and kept nowhere. @param {string} said */
  note(said) {
    const { conversation } = this;
    conversation.changed(conversation.add({ kind: "note", id: `said-${crypto.randomUUID()}`, level: "info", text: said, hint: "" }));
  }

  /** @template T @param {() => Promise<T>} act @returns {Promise<T | null>} */
  async attempt(act) {
    this.problem("");
    try {
      return await act();
    } catch (error) {
      this.problem(`${/** @type {Error} */ (error).message} ${/** @type {any} */ (error).hint ?? ""}`);
      return null;
    }
  }

  async interrupt() {
    const { execution, threadId: thread_id } = this.conversation;
    if (!execution) return;
    const { execution_generation } = execution;
    await this.attempt(() => this.gateway.call("session.interrupt", { session_id: this.sessionId, thread_id, execution_generation }));
  }

  /**
   * Edit the session; null when it was not to be.
   * @param {import("./edits.js").Mutation["operation"]} operation
   * @param {import("./edits.js").Mutation["payload"]} payload
   * @param {(message: string) => boolean} [agrees]
   */
  change(operation, payload, agrees = (message) => confirm(message)) {
    return this.attempt(async () => {
      const { revision, generation } = this.conversation;
      const session = { session_id: this.sessionId, revision, ...(FENCED.has(operation) && generation ? { generation } : {}) };
      const changed = await mutate(this.gateway, session, operation, payload, agrees);
      if (changed) this.conversation.revision = changed.revision;
      this.page.changed();
      return changed;
    });
  }

  /** Take back a message of the user's and all after it, and put its text into the composer. @param {any} item */
  async edit(item) {
    const taken = await this.change("rewind", { message_id: item.id }, () => confirm(text("editSure")));
    if (taken) this.composer.set(taken.result.text ?? item.text);
  }

  /** @param {any} item */
  async branch(item) {
    const made = await this.change("branch", { through_message_id: item.id });
    if (made) this.page.open(made.result.session_id, this.conversation.profile);
  }

  /** @param {any} row */
  async withdraw(row) {
    await this.gateway.call("prompt.cancel", { session_id: this.sessionId, admission_id: row.admission_id });
    await this.refresh();
  }

  /** @param {any} row */
  async acknowledge(row) {
    const { admission_id, execution_generation } = row;
    await this.gateway.call("prompt.resolve_unknown", { session_id: this.sessionId, admission_id, execution_generation });
    await this.refresh();
  }

  async refresh() {
    const { threadId: thread_id } = this.conversation;
    const state = await this.gateway.call("thread.state", { session_id: this.sessionId, thread_id });
    this.conversation.pending = state.pending;
    this.draw();
  }
}

/** Operations that take the execution generation as well, since they change the conversation. */
const FENCED = new Set(["rewind", "reset", "branch", "delete", "undo", "retry", "compress"]);
