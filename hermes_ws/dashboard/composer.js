// Where a message is written: its draft, what was said before, completion, files, commands.

import { Attachments } from "./attachments.js";
import { put as putBlob } from "./blobs.js";
import { Completion } from "./completion.js";
import { element, put } from "./dom.js";
import { text } from "./texts.js";

/** Where half-written messages wait, by session: a draft belongs to its session and to no other. */
const DRAFTS = "hermes-ws.draft.";

/** A line that is a command of the server. `/do` is the loopback model's own; `//` says a slash. */
const COMMAND = /^\/(?!do(\s|$))[A-Za-z][\w-]*(\s|$)/;

export class Composer {
  /**
   * @param {import("./gateway.js").Gateway} gateway
   * @param {import("./conversation.js").Conversation} conversation
   * @param {{problem: (said: string) => void, stop: () => void, say: (markdown: string) => void}} pane
   */
  constructor(gateway, conversation, pane) {
    this.gateway = gateway;
    this.conversation = conversation;
    this.pane = pane;
    this.key = DRAFTS + conversation.sessionId + (conversation.threadId === "main" ? "" : `/${conversation.threadId}`);
    /** @type {{said: string, id: string} | null} */
    this.sending = null;
    /** How far back in what was said before; -1 is the draft. */
    this.back = -1;
    this.draft = "";
    this.input = /** @type {HTMLTextAreaElement} */ (
      element("textarea", { rows: "2", dir: "auto", placeholder: text("say"), "aria-label": `${text("saying")} ${conversation.profile}` })
    );
    this.input.value = localStorage.getItem(this.key) ?? "";
    this.input.addEventListener("input", () => {
      this.back = -1;
      this.keep();
    });
    // Another tab with the same session: what is typed there stands here too, and what is sent there is gone here.
    this.elsewhere = (/** @type {StorageEvent} */ event) => {
      if (event.key === this.key) this.input.value = event.newValue ?? "";
    };
    addEventListener("storage", this.elsewhere);
    this.completion = new Completion(this.input, (word, kind) => this.complete(word, kind));
    this.input.addEventListener("keydown", (event) => this.press(event));
    this.steer = element("button.steer", { type: "button", hidden: true, onclick: () => this.guide() }, text("steer"));
    this.stop = element("button.stop", { type: "button", hidden: true, onclick: () => pane.stop() }, text("stop"));
    this.go = element("button.send", { type: "submit" }, text("send"));
    this.root = element("form.composer", {});
    this.attachments = new Attachments(this.root, (file) => putBlob(gateway, conversation.profile, file), pane.problem);
    put(
      this.root,
      this.completion.list,
      this.attachments.list,
      this.input,
      element(
        "div.actions",
        {},
        element("button.link.attach", { type: "button", onclick: () => this.attachments.pick.click() }, text("attach")),
        this.attachments.pick,
        this.stop,
        this.steer,
        this.go,
      ),
    );
    this.root.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
  }

  end() {
    removeEventListener("storage", this.elsewhere);
  }

  /** @param {boolean} running */
  stands(running) {
    this.stop.toggleAttribute("hidden", !running);
    this.steer.toggleAttribute("hidden", !running);
    // What is sent while it runs waits for its turn, and the button says so.
    put(this.go, text(running ? "queueIt" : "send"));
  }

  keep() {
    if (this.input.value) localStorage.setItem(this.key, this.input.value);
    else localStorage.removeItem(this.key);
  }

  /** @param {string} said */
  set(said) {
    this.input.value = said;
    this.keep();
    this.input.focus();
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (event.isComposing || this.completion.key(event)) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit();
    } else if (event.key === "ArrowUp" && this.onFirstLine() && (this.back >= 0 || this.input.selectionStart === 0)) {
      if (this.recall(1)) event.preventDefault();
    } else if (event.key === "ArrowDown" && this.back >= 0) {
      if (this.recall(-1)) event.preventDefault();
    }
  }

  onFirstLine() {
    return !this.input.value.slice(0, this.input.selectionStart).includes("\n");
  }

  /** What was said in this session before, the latest first; beyond it lies the draft. @param {number} step */
  recall(step) {
    const said = this.conversation.items.flatMap((item) => (item.kind === "message" && item.role === "user" ? [item.text] : [])).reverse();
    const next = this.back + step;
    if (next >= said.length || next < -1) return false;
    if (this.back === -1) this.draft = this.input.value;
    this.back = next;
    this.input.value = next === -1 ? this.draft : said[next];
    this.input.setSelectionRange(0, 0);
    return true;
  }

  /** @param {string} word @param {"slash" | "path"} kind */
  complete(word, kind) {
    const { sessionId, profile } = this.conversation;
    if (kind === "slash") return this.gateway.call("complete.slash", { profile, text: word });
    return this.gateway.call("complete.path", { session_id: sessionId, profile, word });
  }

  async submit() {
    const said = this.input.value.trim();
    const attached = this.attachments.named();
    if (!said && !attached.length) return;
    this.completion.close();
    this.pane.problem(this.attachments.whole ? "" : text("stillSending"));
    if (!this.attachments.whole) return;
    try {
      if (!attached.length && COMMAND.test(said)) await this.command(said);
      else await this.send(said.startsWith("//") ? said.slice(1) : said || text("attachedAlone"), attached);
      this.attachments.clear();
      this.done(said);
    } catch (error) {
      this.pane.problem(`${/** @type {Error} */ (error).message} ${/** @type {any} */ (error).hint ?? ""}`);
    }
  }

  /** @param {string} said @param {{blob: string, media_type: string, name: string}[]} [attached] */
  async send(said, attached = []) {
    // One id for one message: sent again after a lost reply, it is admitted once.
    const whole = JSON.stringify([said, attached]);
    this.sending = this.sending?.said === whole ? this.sending : { said: whole, id: crypto.randomUUID() };
    const { sessionId: session_id, threadId: thread_id, profile } = this.conversation;
    // The profile goes with it: a session of another one is refused by the server, whatever this page believes.
    await this.gateway.call("prompt.submit", { session_id, profile, thread_id, input_id: this.sending.id, text: said, attached });
    this.sending = null;
  }

  /** @param {string} line */
  async command(line) {
    const { sessionId, profile } = this.conversation;
    let told = await this.gateway.call("slash.exec", { session_id: sessionId, profile, command: line });
    // One step: an alias that names an alias is the server's to refuse.
    if (told.type === "alias") told = await this.gateway.call("slash.exec", { session_id: sessionId, profile, command: told.target ?? "" });
    if (told.notice) this.pane.say(told.notice);
    if (told.type === "exec") this.pane.say(told.output ?? "");
    else if (told.type === "send" || told.type === "skill") await this.send(told.message ?? "");
    else if (told.type === "prefill") this.draft = told.message ?? "";
  }

  /** What was sent leaves the box, unless something else stands there by now. @param {string} said */
  done(said) {
    if (this.input.value.trim() === said) this.input.value = this.draft;
    this.draft = "";
    this.back = -1;
    this.keep();
  }

  async guide() {
    const said = this.input.value.trim();
    const generation = this.conversation.execution?.execution_generation;
    if (!said || generation === undefined) return;
    try {
      const { sessionId: session_id, threadId: thread_id, profile } = this.conversation;
      await this.gateway.call("session.steer", { session_id, profile, thread_id, execution_generation: generation, text: said });
      this.draft = "";
      this.done(said);
    } catch (error) {
      this.pane.problem(/** @type {Error} */ (error).message);
    }
  }
}
