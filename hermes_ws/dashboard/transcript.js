// A conversation on the page: each item is drawn once and patched where it changes; live text grows without flicker.

import { attached } from "./attached.js";
import { element, put } from "./dom.js";
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
    this.list = element("ol.items");
    this.earlier = element("button.earlier", { type: "button", hidden: true, onclick: () => acts.earlier() }, text("more"));
    this.scroller = element(
      "div.transcript",
      { tabindex: "0", role: "log", "aria-live": "polite", "aria-label": text("agent") },
      this.earlier,
      this.list,
    );
    /** @type {Map<string, HTMLElement>} */
    this.drawn = new Map();
    /** @type {Map<string, ToolCall>} */
    this.calls = new Map();
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
    }).observe(this.list);
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
    const before = this.list.firstElementChild;
    this.earlier.toggleAttribute("hidden", !this.conversation.more);
    for (const [id, drawn] of this.drawn) {
      if (!this.conversation.byId.has(id)) {
        drawn.remove();
        this.drawn.delete(id);
        this.calls.delete(id);
      }
    }
    for (const item of this.stale) this.patch(item);
    this.stale.clear();
    this.order();
    if (along) this.scroller.scrollTop = this.scroller.scrollHeight;
    // Earlier messages came in above: what was seen stays where it was.
    else if (before?.isConnected && before !== this.list.firstElementChild) {
      this.scroller.scrollTop = scrollTop + this.scroller.scrollHeight - scrollHeight;
    }
  }

  /** Rows are appended as they come; only a page of earlier ones has to go in front. */
  order() {
    const first = this.list.firstElementChild;
    for (const item of this.conversation.items) {
      const row = this.drawn.get(item.id);
      if (!row || row === first) return;
      this.list.insertBefore(row, first);
    }
  }

  /** @param {any} item */
  patch(item) {
    if (!this.conversation.byId.has(item.id)) return;
    let row = this.drawn.get(item.id);
    if (!row) {
      row = element(`li.item.${item.kind}`, { "data-id": item.id });
      this.drawn.set(item.id, row);
      this.list.append(row);
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
    let body = row.querySelector(".body");
    if (!body) {
      const who = element("span.who", {}, item.role === "user" ? text("you") : text("agent"));
      body = element("div.body", { dir: "auto" });
      const acts = element(
        "div.item-actions",
        {},
        item.role === "user" && element("button.link", { type: "button", onclick: () => this.acts.edit(item) }, text("edit")),
        element("button.link", { type: "button", onclick: () => this.acts.branch(item) }, text("branch")),
      );
      row.append(who, body, acts);
    }
    if (item.attached?.length && !row.querySelector(".attached")) {
      body.after(element("ul.attached", {}, item.attached.map((/** @type {any} */ block) => element("li", {}, attached(block, this.acts.content)))));
    }
    const last = body.lastChild;
    if (!item.done || item.role === "user") {
      // Plain text while it grows: only what is new is added.
      if (last instanceof Text && body.childNodes.length === 1 && item.text.startsWith(last.data)) {
        last.appendData(item.text.slice(last.data.length));
      } else {
        put(body, item.text);
      }
      return;
    }
    if (body.getAttribute("data-shown") === item.text) return;
    if (!body.hasChildNodes()) put(body, item.text);
    body.setAttribute("data-shown", item.text);
    this.render(item.text).then((fragment) => {
      if (fragment && body && body.getAttribute("data-shown") === item.text) {
        body.classList.add("rendered");
        put(body, fragment);
        body.querySelectorAll("pre").forEach(copyable);
      }
    });
  }

  /** @param {HTMLElement} row @param {any} item */
  reasoning(row, item) {
    const body = row.querySelector("pre") ?? element("pre", { dir: "auto" });
    if (!row.contains(body)) row.append(element("details", {}, element("summary", {}, text("reasoning")), body));
    put(body, item.text);
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

/** @param {Element} block */
function copyable(block) {
  const button = element("button.copy", { type: "button" }, text("copy"));
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("code")?.textContent ?? block.textContent ?? "");
    put(button, text("copied"));
    setTimeout(() => put(button, text("copy")), 1500);
  });
  block.append(button);
}
