// One open conversation: which profile one is in, the transcript, and the composer with its draft.

import { Conversation } from "./conversation.js";
import { element, hue, put } from "./dom.js";
import { text } from "./texts.js";
import { Transcript } from "./transcript.js";

/** Where half-written messages wait, by session: a draft belongs to its session and to no other. */
const DRAFTS = "hermes-ws.draft.";

export class Pane {
  /**
   * @param {import("./gateway.js").Gateway} gateway
   * @param {{session_id: string, profile: string}} session
   * @param {(markdown: string) => Promise<DocumentFragment | null>} render
   * @param {(pane: Pane) => void} close
   */
  constructor(gateway, session, render, close) {
    this.gateway = gateway;
    this.conversation = new Conversation(session.session_id, session.profile);
    this.transcript = new Transcript(this.conversation, render);
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
    this.stop = element("button.stop", { type: "button", hidden: true, onclick: () => this.interrupt() }, text("stop"));
    this.queue = element("ul.queue", { "aria-label": text("queued") });
    const form = element("form.composer", {}, this.input, element("div.actions", {}, this.stop, element("button.send", { type: "submit" }, text("send"))));
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
        element("button.close", { type: "button", "aria-label": text("closePane"), onclick: () => close(this) }, "×"),
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

  /** Take the snapshot and listen from it; after a lost connection, from where the page stands. */
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
    put(this.state, running ? text("running") : "");
    put(this.queue, pending.filter((row) => row.status === "queued").map((row) => element("li", { dir: "auto" }, row.text)));
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
}
