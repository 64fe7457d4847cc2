// One terminal: a program on a pseudo-terminal of the profile, its screen, and the keys that go to it.

import { element } from "./dom.js";
import { pasted, sequence } from "./keys.js";
import { Screen } from "./screen.js";
import { text } from "./texts.js";
import { Terminal as Emulator } from "./vendor/xterm-headless.js";
import { Unicode11Addon } from "./vendor/xterm-unicode11.js";

/** Lines above the screen that can be scrolled to. */
const SCROLLBACK = 2000;

/** Characters of one input, as the server takes them. */
const MOST_TYPED = 60_000;

/** Characters that may wait to be drawn; of a program that floods its screen, what is beyond is passed over. */
const MOST_WAITING = 2_000_000;

/** Lines that one turn of the wheel goes. */
const WHEEL = 3;

/** Milliseconds after which what a program wrote is told to a screen reader, and how many lines of it. */
const TELL_AFTER = 400;
const MOST_TOLD = 20;

/** Ends an escape sequence that was broken off. */
const CANCEL = "\x18";

export class Terminal {
  /**
   * @param {import("./gateway.js").Gateway} gateway
   * @param {string} profile
   * @param {{terminal_id: string, rows: number, columns: number}} row
   * @param {{leave: () => void, problem: (said: string) => void}} around
   */
  constructor(gateway, profile, row, around) {
    this.gateway = gateway;
    this.profile = profile;
    this.id = row.terminal_id;
    this.around = around;
    this.emulator = new Emulator({ cols: row.columns, rows: row.rows, scrollback: SCROLLBACK, allowProposedApi: true });
    this.emulator.loadAddon(new Unicode11Addon());
    this.emulator.unicode.activeVersion = "11";
    this.screen = new Screen(this.emulator);
    this.keys = /** @type {HTMLTextAreaElement} */ (
      element("textarea.keys", {
        rows: "1",
        "aria-label": `${text("terminalIn")} ${profile}. ${text("terminalLeave")}`,
        autocapitalize: "off",
        autocomplete: "off",
        autocorrect: "off",
        spellcheck: "false",
      })
    );
    this.told = element("div.told", { "aria-live": "polite", "aria-atomic": "false" });
    this.root = element("div.terminal", { "data-terminal": this.id, tabindex: "-1" }, this.screen.root, this.keys, this.told);
    /** Code points that came; null before the first. @type {number | null} */
    this.seen = null;
    this.waiting = 0;
    /** The room that was told last. */
    this.room = "";
    this.ended = false;
    /** Whether questions of the program are answered from here: only one viewer may, and never to what is replayed. */
    this.answers = false;
    this.telling = 0;
    this.unread = "";
    this.emulator.onData((data) => this.answers && this.send(data));
    this.listen();
  }

  listen() {
    const { keys, root } = this;
    root.addEventListener("keydown", (event) => this.press(event));
    keys.addEventListener("beforeinput", (event) => {
      if (event.inputType === "deleteContentBackward" && !keys.value) this.type("\x7f");
      else if (event.inputType === "insertLineBreak") this.type("\r");
      else return;
      event.preventDefault();
    });
    keys.addEventListener("input", (event) => /** @type {InputEvent} */ (event).isComposing || this.typed());
    keys.addEventListener("compositionend", () => this.typed());
    root.addEventListener("paste", (event) => {
      event.preventDefault();
      const said = event.clipboardData?.getData("text/plain");
      if (said) this.type(pasted(said, this.emulator.modes.bracketedPasteMode));
    });
    root.addEventListener("mouseup", () => getSelection()?.isCollapsed && this.focus());
    root.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.scroll(Math.sign(event.deltaY) * WHEEL);
    });
    let touched = 0;
    root.addEventListener("touchstart", (event) => (touched = event.touches[0].clientY), { passive: true });
    root.addEventListener("touchmove", (event) => {
      const lines = Math.trunc((touched - event.touches[0].clientY) / this.screen.rowHeight);
      if (!lines) return;
      touched -= lines * this.screen.rowHeight;
      event.preventDefault();
      this.scroll(lines);
    });
  }

  focus() {
    this.keys.focus({ preventScroll: true });
  }

  /** Through what scrolled away; a program that has the whole screen gets keys instead. @param {number} lines */
  scroll(lines) {
    if (this.emulator.buffer.active.type === "alternate") {
      const key = { key: lines < 0 ? "ArrowUp" : "ArrowDown", ctrlKey: false, altKey: false, shiftKey: false, metaKey: false };
      const code = sequence(key, this.emulator.modes.applicationCursorKeysMode) ?? "";
      this.type(code.repeat(Math.abs(lines)));
    } else {
      this.emulator.scrollLines(lines);
      this.screen.soon();
    }
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "F6" && event.ctrlKey) {
      event.preventDefault();
      return this.around.leave();
    }
    const selected = getSelection();
    const copies = event.ctrlKey && event.key.toLowerCase() === "c" && (event.shiftKey || !selected?.isCollapsed);
    // What is marked is copied, by the browser; nothing marked, and Control-C interrupts.
    if (copies && !selected?.isCollapsed) return void setTimeout(() => selected?.removeAllRanges());
    if (event.ctrlKey && event.key.toLowerCase() === "v") return;
    if (event.shiftKey && (event.key === "PageUp" || event.key === "PageDown")) {
      event.preventDefault();
      const lines = this.emulator.rows - 1;
      this.emulator.scrollLines(event.key === "PageUp" ? -lines : lines);
      return this.screen.soon();
    }
    const code = sequence(event, this.emulator.modes.applicationCursorKeysMode);
    if (code === null) return void (event.target !== this.keys && !event.metaKey && event.key.length === 1 && this.focus());
    event.preventDefault();
    if (event.target !== this.keys) this.focus();
    this.type(code);
  }

  /** What the browser put in: letters, and whatever an input method made. */
  typed() {
    const said = this.keys.value;
    this.keys.value = "";
    if (said) this.type(said.replace(/\n/g, "\r"));
  }

  /** @param {string} data */
  type(data) {
    this.answers = true;
    this.emulator.scrollToBottom();
    this.screen.soon();
    this.send(data);
  }

  /** @param {string} data */
  send(data) {
    if (this.ended) return;
    for (let from = 0; from < data.length; from += MOST_TYPED) {
      this.gateway
        .call("terminal.input", { terminal_id: this.id, profile: this.profile, data: data.slice(from, from + MOST_TYPED) })
        .catch((/** @type {Error} */ error) => this.ended || this.around.problem(error.message));
    }
  }

  /** Look at it, from the beginning of what is kept. */
  async attach() {
    this.emulator.reset();
    this.seen = null;
    this.answers = false;
    this.room = "";
    await this.gateway.call("terminal.attach", { terminal_id: this.id, profile: this.profile });
  }

  /** @param {{offset: number, text: string}} piece */
  show(piece) {
    const { offset, text: said } = piece;
    if (this.seen !== null && offset < this.seen) return;
    let data = this.seen !== null && offset > this.seen ? CANCEL + said : said;
    if (this.waiting > MOST_WAITING) return;
    this.seen = offset + [...said].length;
    this.waiting += data.length;
    this.emulator.write(data, () => {
      this.waiting -= data.length;
      this.screen.soon();
    });
    this.tell(said);
  }

  /** For whoever cannot see the screen: the last lines that were written, in words. @param {string} said */
  tell(said) {
    if (!this.root.contains(document.activeElement)) return;
    this.unread = (this.unread + said).slice(-4000);
    this.telling ||= setTimeout(() => {
      this.telling = 0;
      const lines = this.unread.replace(/\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|[\x00-\x09\x0b-\x1f]/g, "").split("\n");
      this.unread = "";
      const heard = this.emulator.buffer.active.type === "alternate" ? [this.here()] : lines.filter((line) => line.trim());
      for (const line of heard.slice(-MOST_TOLD)) this.told.append(element("div", {}, line));
      while (this.told.children.length > MOST_TOLD) this.told.firstElementChild?.remove();
    }, TELL_AFTER);
  }

  /** The line that the cursor is in. */
  here() {
    const buffer = this.emulator.buffer.active;
    return buffer.getLine(buffer.baseY + buffer.cursorY)?.translateToString(true) ?? "";
  }

  /** The program has it otherwise, or another viewer made it so. @param {number} rows @param {number} columns */
  sized(rows, columns) {
    if (rows === this.emulator.rows && columns === this.emulator.cols) return;
    this.emulator.resize(columns, rows);
    this.screen.soon();
  }

  /** Tell how much room there is here; who works in it decides, and all who look are told. @param {boolean} working */
  async fit(working) {
    const room = this.screen.fits();
    if (!room || this.ended) return;
    const said = JSON.stringify([room, working]);
    const fits = room.rows === this.emulator.rows && room.columns === this.emulator.cols;
    if (said === this.room && (fits || !working)) return;
    this.room = said;
    await this.gateway.call("terminal.resize", { terminal_id: this.id, profile: this.profile, ...room, working }).catch(() => undefined);
  }

  /** Nothing of it follows; what it showed stays to be read. @param {string} said */
  over(said) {
    if (this.ended) return;
    this.ended = true;
    this.root.classList.add("ended");
    this.emulator.write(`\r\n\x1b[0;2m${said}\x1b[0m\x1b[?25l`, () => this.screen.soon());
  }

  end() {
    clearTimeout(this.telling);
    this.screen.end();
    this.emulator.dispose();
  }
}
