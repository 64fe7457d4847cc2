// A conversation on the page: each item is drawn once and patched where it changes; live text grows without flicker.

import { attached } from "./attached.js";
import { element, put } from "./dom.js";
import { Leaves } from "./leaves.js";
import { MessageBody } from "./message_body.js";
import { text } from "./texts.js";
import { ToolCall } from "./tool_call.js";

/** How near to the end, in pixels, counts as "reading along". */
const NEAR = 80;

/** Messages, calls and notes that are held by a page that reads along; earlier ones are read again when asked for. */
const MOST_ITEMS = 400;

/** How many more there may be before the oldest are let go, so that this is not done for each. */
const SLACK = 100;

export class Transcript {
  /**
   * @param {import("./conversation.js").Conversation} conversation
   * @param {(markdown: string) => Promise<DocumentFragment | null>} render
   * @param {{edit: (item: any) => void, branch: (item: any) => void, earlier: () => void,
   *          content: (blob: string, type: string) => Promise<Blob>}} acts
   */
  constructor(conversation, render, acts) {
    this.acts = acts;
    this.conversation = conversation;
    this.render = render;
    this.earlier = element("button.earlier", { type: "button", hidden: true, onclick: () => acts.earlier() }, text("more"));
    this.scroller = element(
      "div.transcript",
      { tabindex: "0", role: "log", "aria-live": "polite", "aria-label": text("agent") },
      this.earlier,
    );
    this.leaves = new Leaves(this.scroller, (id) => this.again(id), (id) => this.forget(id));
    this.scroller.append(this.leaves.root);
    /** Those on leaves that are not empty. @type {Map<string, HTMLElement>} */
    this.drawn = new Map();
    /** @type {Map<string, ToolCall>} */
    this.calls = new Map();
    /** @type {Map<string, MessageBody>} */
    this.bodies = new Map();
    /** @type {Set<any>} */
    this.stale = new Set();
    this.frame = 0;
    conversation.addEventListener("change", (event) => this.note(/** @type {CustomEvent} */ (event).detail));
    this.note(null);
    /** Whether the person reads along at the end. Only scrolling up ends that, and scrolling to the end begins it. */
    this.along = true;
    let top = 0;
    this.scroller.addEventListener("scroll", () => {
      const { scrollHeight, scrollTop, clientHeight } = this.scroller;
      if (scrollHeight - scrollTop - clientHeight < NEAR) this.along = true;
      else if (scrollTop < top) this.along = false;
      top = scrollTop;
    });
    // Rows get their real height when they come into sight, and pictures when they have been fetched.
    new ResizeObserver(() => {
      if (this.along) this.scroller.scrollTop = this.scroller.scrollHeight;
    }).observe(this.leaves.root);
  }

  /** Draw at most once a frame, however many pieces came. @param {any} item one, several, or null for all */
  note(item) {
    if (item === null) this.conversation.items.forEach((each) => this.stale.add(each));
    else if (Array.isArray(item)) item.forEach((each) => this.stale.add(each));
    else this.stale.add(item);
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    const { scrollHeight, scrollTop } = this.scroller;
    const along = this.along;
    // Who reads along at the end keeps a bounded page; who looks further up keeps what they look at.
    if (along && this.conversation.items.length > MOST_ITEMS + SLACK) this.conversation.trim(MOST_ITEMS);
    const before = this.leaves.all[0];
    this.earlier.toggleAttribute("hidden", !this.conversation.more);
    const known = this.leaves.of;
    if (known.size) this.front(known);
    for (const item of this.stale) this.patch(item);
    this.stale.clear();
    // Those whose items are gone go with them.
    if (known.size !== this.conversation.items.length) {
      for (const id of [...known.keys()]) if (!this.conversation.byId.has(id)) this.remove(id);
    }
    if (along) this.scroller.scrollTop = this.scroller.scrollHeight;
    // Earlier messages came in above: what was seen stays where it was.
    else if (before?.root.isConnected && before !== this.leaves.all[0]) {
      this.scroller.scrollTop = scrollTop + this.scroller.scrollHeight - scrollHeight;
    }
  }

  /** Rows are appended as they come; only a page of earlier ones has to go in front. @param {Map<string, any>} known */
  front(known) {
    const { items, byId } = this.conversation;
    const end = items.findIndex((item) => known.has(item.id));
    // Nothing that is here is left: what comes is another conversation.
    if (end < 0) for (const id of [...known.keys()]) if (!byId.has(id)) this.remove(id);
    if (end > 0) this.leaves.front(items.slice(0, end).map((item) => [item.id, this.row(item)]));
  }

  /** @param {string} id */
  remove(id) {
    this.drawn.get(id)?.remove();
    this.leaves.delete(id);
    this.forget(id);
  }

  /** @param {string} id */
  forget(id) {
    for (const each of [this.drawn, this.calls, this.bodies]) each.delete(id);
  }

  /** A row of a leaf that is filled again. @param {string} id */
  again(id) {
    const item = this.conversation.byId.get(id);
    if (!item) return null;
    const row = this.row(item);
    this.patch(item);
    return row;
  }

  /** @param {any} item */
  row(item) {
    const row = element(`li.item.${item.kind}`, { "data-id": item.id });
    this.drawn.set(item.id, row);
    return row;
  }

  /** @param {HTMLElement} place @param {(near: boolean) => void} tell */
  watch = (place, tell) => this.leaves.nearby.watch(place, tell);

  /** @param {any} item */
  patch(item) {
    if (!this.conversation.byId.has(item.id)) return;
    let row = this.drawn.get(item.id);
    // What changes while its leaf is empty is drawn when that is filled.
    if (!row && this.leaves.of.has(item.id)) return;
    if (!row) {
      row = this.row(item);
      this.leaves.append(item.id, row);
    }
    if (item.kind === "message") this.message(row, item);
    else if (item.kind === "reasoning") this.reasoning(row, item);
    else if (item.kind === "tool") this.tool(row, item);
    else this.noteRow(row, item);
  }

  /** @param {HTMLElement} row @param {any} item */
  message(row, item) {
    row.classList.toggle("user", item.role === "user");
    row.classList.toggle("writing", !item.done);
    let body = this.bodies.get(item.id);
    if (!body) {
      const markdown = item.role === "user" ? null : this.render;
      body = new MessageBody(element("div.body", { dir: "auto" }), markdown, this.watch);
      this.bodies.set(item.id, body);
      const acts = element(
        "div.item-actions",
        {},
        item.role === "user" && element("button.link", { type: "button", onclick: () => this.acts.edit(item) }, text("edit")),
        element("button.link", { type: "button", onclick: () => this.acts.branch(item) }, text("branch")),
      );
      put(row, element("span.who", {}, item.role === "user" ? text("you") : text("agent")), body.root, acts);
    }
    if (item.attached?.length && !row.querySelector(".attached")) {
      body.root.after(element("ul.attached", {}, item.attached.map((/** @type {any} */ block) => element("li", {}, attached(block, this.acts.content)))));
    }
    body.draw(item.text, item.done);
  }

  /** @param {HTMLElement} row @param {any} item */
  reasoning(row, item) {
    let body = this.bodies.get(item.id);
    if (!body) {
      body = new MessageBody(element("pre", { dir: "auto" }), null, this.watch);
      this.bodies.set(item.id, body);
      put(row, element("details", {}, element("summary", {}, text("reasoning")), body.root));
    }
    body.draw(item.text, item.done);
  }

  /** @param {HTMLElement} row @param {any} item */
  tool(row, item) {
    let call = this.calls.get(item.id);
    if (!call || !row.contains(call.root)) {
      call = new ToolCall(item, this.acts.content);
      this.calls.set(item.id, call);
      put(row, call.root);
    }
    call.draw(item);
  }

  /** @param {HTMLElement} row @param {any} item */
  noteRow(row, item) {
    row.classList.add(item.level);
    put(row, element("p", { dir: "auto" }, text(item.text), item.more && `: ${item.more}`), item.hint && element("p.hint", { dir: "auto" }, text(item.hint)));
  }
}
