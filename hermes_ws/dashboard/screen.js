// The screen of a terminal, drawn from the library's buffer: a row of text for each of its rows, patched where it changed.

import { element } from "./dom.js";
import { painted, palette, plain, rgb, same, straight } from "./paint.js";

/** @typedef {import("./vendor/xterm-headless.js").Terminal} Emulator */
/** @typedef {import("./vendor/xterm-headless.js").Cell} Cell */

/** Characters whose width is the font's own business get a place of a cell each, so that columns stay columns. */
const OWN_PLACE = /[^\x20-\u024f\u2500-\u259f]/;

/** Letters of the line that is measured. */
const PROBE = 40;

export class Screen {
  /** @param {Emulator} emulator */
  constructor(emulator) {
    this.emulator = emulator;
    this.probe = element("span.probe", { "aria-hidden": "true" }, "0".repeat(PROBE));
    this.rows = element("div.rows", { dir: "ltr" });
    this.root = element("div.screen", {}, this.probe, this.rows);
    /** What each row shows now. @type {string[]} */
    this.shown = [];
    this.cell = emulator.buffer.active.getNullCell();
    this.cursorHidden = false;
    const cursor = (/** @type {boolean} */ hidden) => (/** @type {(number | number[])[]} */ params) => {
      if (params.includes(25)) this.cursorHidden = hidden;
      return false;
    };
    emulator.parser.registerCsiHandler({ prefix: "?", final: "l" }, cursor(true));
    emulator.parser.registerCsiHandler({ prefix: "?", final: "h" }, cursor(false));
    this.frame = 0;
  }

  /** Draw at most once a frame, however much came. */
  soon() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      if (!this.emulator.modes.synchronizedOutputMode) this.draw();
    });
  }

  end() {
    cancelAnimationFrame(this.frame);
  }

  /** How many rows and columns have room. */
  fits() {
    const { width, height } = this.probe.getBoundingClientRect();
    const style = getComputedStyle(this.root);
    const across = this.root.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const down = this.root.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
    if (!width || across <= 0 || down <= 0) return null;
    return { columns: Math.max(2, Math.floor((across * PROBE) / width)), rows: Math.max(1, Math.floor(down / height)) };
  }

  /** Pixels of a row. */
  get rowHeight() {
    return this.probe.getBoundingClientRect().height || 16;
  }

  draw() {
    const { emulator, rows } = this;
    const buffer = emulator.buffer.active;
    while (rows.children.length > emulator.rows) rows.lastElementChild?.remove();
    while (rows.children.length < emulator.rows) rows.append(element("div.row"));
    this.shown.length = emulator.rows;
    const cursorRow = buffer.baseY - buffer.viewportY + buffer.cursorY;
    for (let row = 0; row < emulator.rows; row++) {
      const runs = this.runs(buffer, buffer.viewportY + row, row === cursorRow && !this.cursorHidden ? buffer.cursorX : -1);
      const said = runs.map((run) => `${run.key}\x00${run.text}`).join("\x01");
      if (this.shown[row] === said) continue;
      this.shown[row] = said;
      rows.children[row].replaceChildren(...runs.map((run) => painted(run.text, run.look, run.more)));
    }
  }

  /** A row as pieces of text that look the same. @param {import("./vendor/xterm-headless.js").Buffer} buffer @param {number} at @param {number} cursor */
  runs(buffer, at, cursor) {
    /** @type {{key: string, text: string, look: import("./paint.js").Look, more: string}[]} */
    const runs = [];
    const line = buffer.getLine(at);
    // What stands at the end and shows nothing is left out.
    const last = Math.max(this.length(line), cursor + 1);
    for (let column = 0; column < last; column++) {
      const cell = line?.getCell(column, this.cell);
      const width = cell?.getWidth() ?? 1;
      if (width === 0) continue;
      const text = straight(cell?.getChars() ?? "") || " ";
      const look = cell ? lookOf(cell) : plain();
      const place = width === 2 ? "wide" : OWN_PLACE.test(text) ? "place" : "";
      const more = column === cursor ? `${place} cursor`.trim() : place;
      const key = same(look) + more;
      const before = runs.at(-1);
      if (before?.key === key && !more) before.text += text;
      else runs.push({ key, text, look, more });
    }
    return runs;
  }

  /** @param {import("./vendor/xterm-headless.js").Line | undefined} line */
  length(line) {
    let length = Math.min(line?.length ?? 0, this.emulator.cols);
    while (length > 0) {
      const cell = line?.getCell(length - 1, this.cell);
      if (!cell || (cell.getChars() || " ") !== " " || same(lookOf(cell)) !== PLAIN) break;
      length -= 1;
    }
    return length;
  }
}

const PLAIN = same(plain());

/** @param {Cell} cell @returns {import("./paint.js").Look} */
function lookOf(cell) {
  return {
    fg: cell.isFgRGB() ? rgb(cell.getFgColor()) : cell.isFgPalette() ? palette(cell.getFgColor()) : null,
    bg: cell.isBgRGB() ? rgb(cell.getBgColor()) : cell.isBgPalette() ? palette(cell.getBgColor()) : null,
    bold: Boolean(cell.isBold()),
    dim: Boolean(cell.isDim()),
    italic: Boolean(cell.isItalic()),
    underline: Boolean(cell.isUnderline()),
    inverse: Boolean(cell.isInverse()),
    strike: Boolean(cell.isStrikethrough()),
    hidden: Boolean(cell.isInvisible()),
  };
}
