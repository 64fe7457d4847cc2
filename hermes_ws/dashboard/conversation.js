// One thread as a page shows it: a snapshot, and the events after it folded on.

/**
 * @typedef {{kind: "message", id: string, role: string, text: string, partial: boolean, done: boolean, points?: number,
 *            attached?: any[]}} MessageItem
 * @typedef {{kind: "reasoning", id: string, text: string, done: boolean, points?: number}} ReasoningItem
 * @typedef {{kind: "tool", id: string, name: string, arguments: Record<string, any>, output: string, done: boolean,
 *            failed: boolean, duration: number | null, images: any[], blob: string | null, diff: string | null}} ToolItem
 * @typedef {{kind: "note", id: string, level: string, text: string, more?: string, hint: string}} NoteItem
 * @typedef {MessageItem | ReasoningItem | ToolItem | NoteItem} Item
 */

/** Characters of its first words that a conversation without a title is called by. */
const MOST_OPENING = 80;

export class Conversation extends EventTarget {
  /** @param {string} sessionId @param {string} profile @param {string} [threadId] */
  constructor(sessionId, profile, threadId = "main") {
    super();
    this.sessionId = sessionId;
    this.threadId = threadId;
    this.profile = profile;
    /** @type {Item[]} */
    this.items = [];
    /** @type {Map<string, Item>} */
    this.byId = new Map();
    /** @type {string | null} */
    this.cursor = null;
    /** @type {{execution_generation: number} | null} */
    this.execution = null;
    /** @type {Record<string, any>} */
    this.info = {};
    this.revision = 0;
    /** The execution generation that was seen last; edits of the conversation are fenced by it. */
    this.generation = 0;
    /** @type {{admission_id: string, text: string, status: string}[]} */
    this.pending = [];
    this.more = false;
    /** How full the model's context is, as far as that is known. @type {{tokens: number, limit: number} | null} */
    this.context = null;
    /** Results whose calls lie on an earlier page. @type {Map<string, any>} */
    this.orphans = new Map();
  }

  /** Take a snapshot. What was known is kept only where the position says that it still holds. @param {any} snapshot */
  begin(snapshot) {
    if (snapshot.position !== "ok") {
      this.items = [];
      this.byId.clear();
    }
    if (snapshot.messages) {
      this.items = [];
      this.byId.clear();
      for (const message of snapshot.messages) this.history(message);
    }
    this.more = snapshot.more_messages ?? false;
    this.execution = snapshot.execution;
    this.generation = snapshot.execution?.execution_generation ?? this.generation;
    this.pending = snapshot.pending;
    this.revision = snapshot.revision;
    this.info = snapshot.info ?? {};
    if (snapshot.position === "fresh") this.cursor = snapshot.cursor;
    else if (snapshot.position !== "ok") this.cursor = `${snapshot.generation}:0`;
    if (snapshot.in_progress) {
      const { message_id, text } = snapshot.in_progress;
      const item = this.message(message_id, "assistant");
      item.text = text;
    }
    this.changed(null);
  }

  /** @param {any} message */
  history(message) {
    if (message.role === "tool") {
      for (const block of message.content) {
        const tool = this.byId.get(block.call_id);
        if (tool?.kind === "tool") Object.assign(tool, answered(block));
        else this.orphans.set(block.call_id, block);
      }
      return;
    }
    for (const block of message.content ?? []) {
      if (block.type === "reasoning") this.add({ kind: "reasoning", id: `r-${message.message_id}`, text: block.text, done: true });
    }
    if (message.text) {
      const item = this.message(message.message_id, message.role);
      Object.assign(item, { text: message.text, done: true, attached: attachedOf(message) });
    }
    for (const block of message.content ?? []) {
      if (block.type === "tool_call") {
        const tool = this.tool(block);
        const known = this.orphans.get(block.call_id);
        if (known) Object.assign(tool, answered(known));
        this.orphans.delete(block.call_id);
      }
    }
  }

  /** A page of what was said before all that is here. @param {{messages: any[], more: boolean}} page */
  prepend(page) {
    const here = this.items;
    this.items = [];
    for (const message of page.messages) this.history(message);
    const fresh = this.items;
    this.items = [...fresh, ...here];
    this.more = page.more;
    // What was here already stays as it is drawn, however much that is.
    this.changed(fresh);
  }

  /** The first words, where the beginning is here. */
  opening() {
    const first = this.more ? null : this.items.find((item) => item.kind === "message" && item.role === "user");
    return first?.kind === "message" ? first.text.trim().split("\n", 1)[0].slice(0, MOST_OPENING) : "";
  }

  /** The message before which earlier ones are asked for. */
  first() {
    return this.items.find((item) => item.kind === "message")?.id ?? null;
  }

  /** Let go of the oldest items above a number; they can be read again. @param {number} most */
  trim(most) {
    let count = this.items.length - most;
    // What is left begins with a message, so that what is before it can be asked for.
    while (count > 0 && count < this.items.length && this.items[count].kind !== "message") count += 1;
    if (count <= 0 || count >= this.items.length) return false;
    for (const item of this.items.splice(0, count)) this.byId.delete(item.id);
    this.more = true;
    return true;
  }

  /** @param {any} event the params of an `event` notification of this thread */
  apply(event) {
    const { type, payload } = event;
    /** @type {Item | Item[] | null} what is to be drawn anew; null for all */
    let touched = [];
    switch (type) {
      case "execution.queued":
        this.pending = [...this.pending, { ...payload, status: "queued" }];
        break;
      case "execution.started":
        this.execution = { execution_generation: payload.execution_generation };
        this.generation = payload.execution_generation;
        this.pending = this.pending.map((row) => (row.admission_id === payload.admission_id ? { ...row, status: "started" } : row));
        break;
      case "execution.finished":
        this.pending = this.pending.filter((row) => row.admission_id !== event.admission_id);
        // One that was withdrawn before it began ends as well, beside the one that runs.
        if (this.execution && event.execution_generation !== this.execution.execution_generation) break;
        this.execution = null;
        touched = this.finished();
        if (payload.outcome !== "completed") touched.push(this.outcome(event));
        break;
      case "execution.lost":
        this.execution = null;
        touched = this.add({ kind: "note", id: `lost-${event.cursor}`, level: "warning", text: "lostExecution", hint: "" });
        break;
      case "message.start":
        touched = this.message(payload.message_id, payload.role);
        break;
      case "message.delta":
        touched = this.grow(this.message(payload.message_id, "assistant"), payload);
        break;
      case "message.complete":
        touched = this.complete(payload);
        break;
      case "reasoning.delta":
        touched = this.grow(this.add({ kind: "reasoning", id: `r-${payload.message_id}`, text: "", done: false }), payload);
        break;
      case "reasoning.complete":
        touched = this.add({ kind: "reasoning", id: `r-${payload.message_id}`, text: "", done: true });
        Object.assign(touched, { text: payload.text, done: true });
        break;
      case "tool.start":
        touched = this.tool(payload);
        break;
      case "tool.progress": {
        const tool = this.byId.get(payload.call_id);
        if (tool?.kind === "tool") touched = Object.assign(tool, { output: tool.output + payload.text });
        break;
      }
      case "tool.complete":
        touched = Object.assign(this.tool(payload), {
          output: payload.output,
          done: true,
          failed: payload.is_error,
          duration: payload.duration_ms,
          images: payload.images ?? [],
          blob: payload.blob ?? null,
          diff: payload.diff ?? null,
        });
        break;
      case "notice":
        touched = this.add({ kind: "note", id: `n-${event.cursor ?? Math.random()}`, level: payload.level, text: payload.message, hint: payload.hint });
        break;
      case "status.update":
        touched = this.add({ kind: "note", id: `n-${event.cursor ?? Math.random()}`, level: "info", text: payload.text, hint: "" });
        break;
      case "connection.request":
        touched = this.connecting(payload.op_id, payload.targets.map((/** @type {any} */ target) => target.name).join(", "));
        break;
      case "connection.update":
        touched = this.hinted(payload.op_id, payload.settled && (payload.settled_by ?? "settled"));
        break;
      case "request.settled":
        touched = this.hinted(payload.id, payload.state);
        break;
      case "usage.update":
        if (payload.context_tokens && payload.context_limit) this.context = { tokens: payload.context_tokens, limit: payload.context_limit };
        break;
      case "compaction.complete":
        touched = this.add({ kind: "note", id: `compact-${event.cursor}`, level: "info", text: "compacted", hint: payload.summary });
        break;
      case "thread.rebased":
        // What came from the old generation is gone; the events of the new one follow from its beginning.
        this.items = [];
        this.byId.clear();
        this.more = false;
        this.execution = null;
        this.pending = [];
        this.cursor = `${payload.generation}:0`;
        touched = null;
        break;
      case "session.info":
        this.revision = payload.revision;
        this.info = payload.info;
        break;
    }
    // The cursor moves only after the event was applied.
    if (event.cursor) this.cursor = event.cursor;
    this.changed(touched);
  }

  /** What the agent asked to be connected, and how that stands. @param {string} id @param {string} names */
  connecting(id, names) {
    return this.add({ kind: "note", id: `op-${id}`, level: "info", text: "connectionAsked", more: names, hint: "connection.open" });
  }

  /** How that stands now. @param {string} id @param {string | false} state @returns {Item[]} */
  hinted(id, state) {
    const note = this.byId.get(`op-${id}`);
    if (note?.kind !== "note") return [];
    if (state) note.hint = `connection.${state}`;
    return [note];
  }

  /** Nothing of an execution goes on after its end. @returns {Item[]} those that were not done */
  finished() {
    const open = this.items.filter((item) => "done" in item && !item.done);
    for (const item of open) if ("done" in item) item.done = true;
    return open;
  }

  /** @param {any} event */
  outcome(event) {
    const { outcome, error } = event.payload;
    return this.add({
      kind: "note",
      id: `end-${event.cursor}`,
      level: outcome === "failed" ? "error" : "info",
      text: error?.message ?? outcome,
      hint: error?.hint ?? "",
    });
  }

  /** @param {any} payload */
  complete(payload) {
    if (payload.role === "tool") return [];
    if (!payload.text && !this.byId.has(payload.message_id)) return [];
    const item = this.message(payload.message_id, payload.role);
    return Object.assign(item, { text: payload.text, partial: payload.partial ?? false, done: true, attached: attachedOf(payload) });
  }

  /** @param {Item} item @param {{offset: number, text: string}} piece */
  grow(item, piece) {
    if (item.kind === "message" || item.kind === "reasoning") {
      // Offsets count code points, and counting a long text for each piece would be slow: the count is kept.
      item.points ??= [...item.text].length;
      // A piece that does not continue what is here would be a gap; the whole comes with the end of the message.
      if (item.points === piece.offset) {
        item.text += piece.text;
        item.points += [...piece.text].length;
      }
    }
    return item;
  }

  /** @param {string} id @param {string} role @returns {MessageItem} */
  message(id, role) {
    return /** @type {MessageItem} */ (this.add({ kind: "message", id, role, text: "", partial: false, done: false }));
  }

  /** @param {any} call @returns {ToolItem} */
  tool(call) {
    return /** @type {ToolItem} */ (
      this.add({
        kind: "tool",
        id: call.call_id,
        name: call.name,
        arguments: call.arguments ?? {},
        output: "",
        done: false,
        failed: false,
        duration: null,
        images: [],
        blob: null,
        diff: null,
      })
    );
  }

  /** The item of this id, or this one when there is none yet. @template {Item} T @param {T} item @returns {Item} */
  add(item) {
    const known = this.byId.get(item.id);
    if (known) return known;
    this.byId.set(item.id, item);
    this.items.push(item);
    return item;
  }

  /** @param {Item | Item[] | null} item the one that changed; null when all may have */
  changed(item) {
    this.dispatchEvent(new CustomEvent("change", { detail: item }));
  }
}

/** The pictures and files of a message. @param {{content?: any[]}} message */
function attachedOf(message) {
  return (message.content ?? []).filter((block) => block.type === "image" || block.type === "file");
}

/** What a result in the history tells of its call. @param {{output: string, is_error: boolean, images?: any[], diff?: string | null}} block */
function answered(block) {
  return { output: block.output, done: true, failed: block.is_error, images: block.images ?? [], diff: block.diff ?? null };
}
