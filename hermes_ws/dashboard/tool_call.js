// One call of a tool in the transcript: what was asked, how it goes, what came of it. Made once and patched.

import { coloured } from "./ansi.js";
import { attached } from "./attached.js";
import { differences, drawn, parsed, plain } from "./diff.js";
import { element, put } from "./dom.js";
import { visible } from "./paint.js";
import { text } from "./texts.js";

/** Characters of an output that are shown: from its end while it grows, from its beginning when it is whole. */
const SHOWN = 4000;

/** Characters of an output that are shown when all of it is asked for; a page with more of it would be slow. */
const MOST_SHOWN = 400_000;

/** Characters of one argument that are shown. */
const ARGUMENT = 20_000;

/** Pictures of one call that are shown. */
const MOST_PICTURES = 20;

/** Tools whose output is what a program wrote. */
const SCREENS = new Set(["terminal", "process", "run_with_login"]);

/** Decodes a whole output that is fetched. */
const UTF8 = new TextDecoder();

export class ToolCall {
  /** @param {any} item @param {(blob: string, type: string) => Promise<Blob>} content */
  constructor(item, content) {
    this.content = content;
    this.line = element("summary");
    // What a command wrote stands on a screen; what another tool tells is text.
    this.output = element(SCREENS.has(item.name) ? "pre.output.on-screen" : "pre.output", { dir: "ltr", "aria-label": text("output"), hidden: true });
    this.all = element("button.link.all", { type: "button", hidden: true, onclick: () => this.unfold() }, text("showAll"));
    this.pictures = element("ul.attached", { hidden: true });
    /** @type {string | null} */
    this.whole = null;
    this.said = "";
    this.item = item;
    this.about = element("div.about-call");
    this.compared = "";
    this.root = element("details", { open: !item.done }, this.line, this.about, this.output, this.all, this.pictures);
  }

  /** What the call is about, as a person would want to read it. @param {any} item @returns {HTMLElement[]} */
  asked({ name, arguments: given, done, failed, diff }) {
    if (name === "patch" && Array.isArray(given.edits)) {
      return given.edits.map((/** @type {any} */ edit) => drawn(differences(say(edit.old), say(edit.new)), say(given.path)));
    }
    if (name === "write_file" && typeof given.content === "string") {
      // What was there before is known when it is done, and not always then: what stands there now is shown as it is.
      if (diff) return parsed(diff).map((file) => drawn(file.lines, say(given.path)));
      if (done && !failed && diff === null) return [drawn(differences("", given.content), say(given.path))];
      return [drawn(plain(given.content), say(given.path))];
    }
    if (name === "terminal" && typeof given.command === "string") return [element("pre.arguments.command", { dir: "ltr" }, element("span.soft", { "aria-hidden": "true" }, "$ "), visible(given.command))];
    const rows = Object.entries(given).map(([key, value]) => [element("dt", {}, key), element("dd", { dir: "auto" }, visible(clip(say(value), ARGUMENT)))]);
    return rows.length ? [element("dl.arguments", {}, rows.flat())] : [];
  }

  /** @param {any} item */
  draw(item) {
    this.item = item;
    const compared = `${item.done}/${item.failed}/${item.diff !== null}`;
    if (compared !== this.compared) put(this.about, this.asked(item));
    this.compared = compared;
    const state = item.done ? (item.failed ? "failed" : "done") : "running";
    const said = JSON.stringify([state, item.duration]);
    if (said !== this.said) {
      put(
        this.line,
        element(`span.dot.${state}`, { role: "img", "aria-label": text(state) }),
        element("code.name", {}, item.name),
        element("span.gist", { dir: "auto" }, gist(item.arguments)),
        item.duration !== null && element("span.duration", { dir: "ltr" }, duration(item.duration)),
      );
      this.said = said;
    }
    this.show(this.whole ?? item.output);
    const pictures = item.images.slice(0, MOST_PICTURES);
    if (pictures.length !== this.pictures.children.length) {
      put(this.pictures, pictures.map((/** @type {any} */ block) => element("li", {}, attached(block, this.content))));
      this.pictures.hidden = !pictures.length;
    }
  }

  /** @param {string} whole */
  show(whole) {
    const { item, output } = this;
    const most = this.whole === null ? SHOWN : MOST_SHOWN;
    const cut = whole.length > most;
    const shown = !cut ? whole : item.done ? whole.slice(0, most) : whole.slice(-most);
    if (output.getAttribute("data-shown") !== `${whole.length}/${shown.length}/${item.done}`) {
      output.setAttribute("data-shown", `${whole.length}/${shown.length}/${item.done}`);
      put(output, cut && !item.done && "…", coloured(shown), cut && item.done && "…");
      if (!item.done) output.scrollTop = output.scrollHeight;
    }
    output.hidden = !whole;
    this.all.hidden = !item.done || this.whole !== null || (!cut && !item.blob);
  }

  /** All of it, fetched where the event carried a part. */
  async unfold() {
    const { item } = this;
    try {
      this.whole = item.blob ? UTF8.decode(await (await this.content(item.blob, "text/plain")).arrayBuffer()) : item.output;
    } catch (error) {
      put(this.all, /** @type {Error} */ (error).message);
      return;
    }
    this.show(this.whole ?? "");
  }
}

/** @param {Record<string, any>} values */
function gist(values) {
  const first = values.command ?? values.path ?? Object.values(values)[0] ?? "";
  return visible(say(first).split("\n", 1)[0].slice(0, 120));
}

/** @param {any} value */
function say(value) {
  return typeof value === "string" ? value : JSON.stringify(value) ?? "";
}

/** @param {string} said @param {number} most */
function clip(said, most) {
  return said.length > most ? `${said.slice(0, most)}…` : said;
}

/** @param {number} milliseconds */
function duration(milliseconds) {
  return milliseconds < 1000 ? `${milliseconds} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}
