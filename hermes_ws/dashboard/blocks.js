// Where a text in Markdown can be cut while it grows: what stands before a cut is finished, and is rendered by itself.

/** @typedef {{plain: string, source: string}} Block `plain` is the text as it came, `source` what is to be rendered for it */

/** Characters after which a text is cut wherever that is possible: what is laid out anew for each piece stays small. */
const MOST = 8192;

/** Blocks that are cut off at every chance, so that an answer of usual length is seen rendered as it comes. */
const FIRST = 40;

/** Characters of a block after those: a text of thousands of paragraphs is rendered in fewer steps. */
const LEAST = 2000;

const FENCE = /^\s*(`{3,}(?=[^`]*$)|~{3,})(.*)$/;

const BLANK = /^[ \t]*$/;

/** What goes on with what stands above a blank line: a list, or what is indented within one. */
const GOES_ON = /^(?:\s|[-*+]\s|\d{1,9}[.)]\s)/;

/** Definitions that other blocks refer to. */
const DEFINED = /^ {0,3}\[[^\]\n]+\]:.*$/gm;

/** Characters of definitions that are given to every block. */
const MOST_DEFINED = 4000;

export class Blocks {
  constructor() {
    /** What is not finished. */
    this.rest = "";
    /** Up to where `rest` was read; a line begins there. */
    this.read = 0;
    /** The line that opened the code that `read` stands in. */
    this.fence = "";
    /** Whether the line before `read` is blank, outside of code. */
    this.blank = false;
    this.count = 0;
    /** What opens the block that was cut within code. */
    this.opener = "";
  }

  /** @param {string} more @returns {Block[]} those that are finished now */
  add(more) {
    this.rest += more;
    /** @type {Block[]} */
    const found = [];
    for (let end; (end = this.rest.indexOf("\n", this.read)) >= 0; ) {
      const line = this.rest.slice(this.read, end);
      if (this.ends(line)) found.push(this.cut(this.read));
      this.pass(line);
      this.read += line.length + 1;
      if (this.read >= MOST) found.push(this.cut(this.read));
    }
    // The line that is being written says enough with its first letter, unless it may become one of a list.
    const begun = this.rest.slice(this.read, this.read + 1);
    if (/[^-*+\d\s]/.test(begun) && this.ends(begun)) found.push(this.cut(this.read));
    while (this.rest.length - this.read >= MOST) found.push(this.cut(this.within()));
    return found;
  }

  /** @returns {Block[]} what is left when nothing more comes */
  end() {
    return this.rest ? [this.cut(this.rest.length)] : [];
  }

  /** Whether what stands before a line is a block that this line does not go on with. @param {string} line */
  ends(line) {
    const least = this.count < FIRST ? 1 : LEAST;
    return this.blank && !this.fence && this.read >= least && !BLANK.test(line) && !GOES_ON.test(line);
  }

  /** @param {string} line */
  pass(line) {
    const mark = FENCE.exec(line);
    if (!this.fence) {
      if (mark) this.fence = line;
    } else if (mark && !mark[2].trim() && mark[1].startsWith(ticks(this.fence))) this.fence = "";
    this.blank = !this.fence && BLANK.test(line);
  }

  /** A place in a line without an end: after a blank, and not within a character. */
  within() {
    const blank = this.rest.lastIndexOf(" ", MOST - 1) + 1;
    if (blank > this.read) return blank;
    const half = this.rest.charCodeAt(MOST - 1);
    return half >= 0xd800 && half < 0xdc00 ? MOST - 1 : MOST;
  }

  /** @param {number} at @returns {Block} */
  cut(at) {
    const plain = this.rest.slice(0, at);
    this.rest = this.rest.slice(at);
    this.read = Math.max(this.read - at, 0);
    this.count += 1;
    // Code that goes on in the next block is closed in this one and opened again in that.
    const closer = this.fence ? `\n${ticks(this.fence)}` : "";
    const source = `${this.opener}${plain}${closer}`;
    this.opener = this.fence ? `${this.fence}\n` : "";
    return { plain, source };
  }
}

/** The definitions of a whole text, for blocks that were cut from it. @param {string} whole */
export function definitions(whole) {
  return whole.includes("]:") ? (whole.match(DEFINED) ?? []).join("\n").slice(0, MOST_DEFINED) : "";
}

/** @param {string} opening the line that opened code */
function ticks(opening) {
  return FENCE.exec(opening)?.[1] ?? "";
}
