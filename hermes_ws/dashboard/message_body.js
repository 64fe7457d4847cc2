// The text of a message: it grows as plain text, and each block of it is rendered once, when it is finished and in sight.

import { Blocks, definitions } from "./blocks.js";
import { element, put } from "./dom.js";
import { text } from "./texts.js";

/** Blocks from which on those that are out of sight are left out of the layout. */
const LONG = 12;

/** @typedef {{place: HTMLElement, source: string, near: boolean, state: "waiting" | "asked" | "shown"}} Part */

export class MessageBody {
  /**
   * @param {HTMLElement} root
   * @param {((markdown: string) => Promise<DocumentFragment | null>) | null} render null for what is no Markdown
   * @param {(place: HTMLElement, tell: (near: boolean) => void) => void} watch tells whether a place is near to what is seen
   */
  constructor(root, render, watch) {
    this.root = root;
    this.render = render;
    this.watch = watch;
    this.shown = "";
    this.done = false;
    this.blocks = new Blocks();
    /** The finished ones. @type {Part[]} */
    this.parts = [];
    /** What grows. @type {Text | null} */
    this.tail = null;
  }

  begin() {
    this.shown = "";
    this.done = false;
    this.blocks = new Blocks();
    this.parts = [];
    this.tail = null;
    this.root.replaceChildren();
  }

  /** @param {string} whole @param {boolean} done whether nothing more comes */
  draw(whole, done) {
    // What came to its end may be another text than what was told piece by piece.
    if (!whole.startsWith(this.shown) || (this.done && whole !== this.shown)) this.begin();
    const news = whole.slice(this.shown.length);
    this.shown = whole;
    const ready = news ? this.blocks.add(news) : [];
    if (done && !this.done) ready.push(...this.blocks.end());
    for (const block of ready) this.finish(block);
    if (this.blocks.rest) this.grow(this.blocks.rest);
    if (done && !this.done) this.whole();
    // Those whose answer did not come are asked for again.
    else if (done) for (const part of this.parts) if (part.near) this.ask(part);
  }

  /** Only what is new is added. @param {string} rest */
  grow(rest) {
    if (!this.tail) {
      this.tail = new Text();
      this.root.append(element("div.part", {}, this.tail));
    }
    if (rest.length > this.tail.length && rest.startsWith(this.tail.data)) this.tail.appendData(rest.slice(this.tail.length));
    else if (rest.length !== this.tail.length) this.tail.data = rest;
  }

  /** @param {import("./blocks.js").Block} block */
  finish({ plain, source }) {
    this.grow(plain);
    const place = /** @type {HTMLElement} */ (this.tail?.parentElement);
    this.tail = null;
    this.root.classList.toggle("long", this.root.children.length > LONG);
    if (!this.render) return;
    /** @type {Part} */
    const part = { place, source, near: false, state: "waiting" };
    this.parts.push(part);
    this.watch(place, (near) => {
      part.near = near;
      if (near) this.ask(part);
    });
  }

  /** All is here. What the blocks refer to may have come after them. */
  whole() {
    this.done = true;
    const defined = this.render && this.parts.length > 1 ? definitions(this.shown) : "";
    if (defined) {
      for (const part of this.parts) {
        if (!part.source.includes("[")) continue;
        part.source += `\n\n${defined}`;
        if (part.state !== "waiting") this.ask(part, true);
      }
    }
    this.settled();
  }

  /** @param {Part} part @param {boolean} [anew] */
  async ask(part, anew = false) {
    if (!this.render || (part.state !== "waiting" && !anew)) return;
    part.state = "asked";
    const { source } = part;
    const fragment = await this.render(source);
    // What it refers to came meanwhile, and it was asked for again with that.
    if (part.source !== source) return;
    part.state = fragment ? "shown" : "waiting";
    if (fragment) {
      put(part.place, fragment);
      part.place.classList.add("rendered");
      part.place.querySelectorAll("pre").forEach(copyable);
    }
    this.settled();
  }

  settled() {
    const asked = this.parts.some((part) => part.state === "asked");
    const shown = this.parts.some((part) => part.state === "shown");
    this.root.classList.toggle("rendered", this.done && shown && !asked);
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
