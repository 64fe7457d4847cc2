// What a command wrote, with its colours: for output that is read, not for a screen that is drawn on.

import { painted, palette, plain, rgb, visible } from "./paint.js";

/** Escape sequences: those of colours, all others, those with a text of their own, and stray control characters. */
const SEQUENCE = /\x1b\[([0-9;:]*)m|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]|\x1b/g;

/** @param {string} text @returns {DocumentFragment} */
export function coloured(text) {
  const made = document.createDocumentFragment();
  const look = plain();
  let from = 0;
  const lines = overwritten(text);
  for (const found of lines.matchAll(SEQUENCE)) {
    if (found.index > from) made.append(painted(visible(lines.slice(from, found.index)), look));
    from = found.index + found[0].length;
    if (found[1] !== undefined) dress(look, found[1]);
  }
  if (from < lines.length) made.append(painted(visible(lines.slice(from)), look));
  return made;
}

/** A line that went back to its beginning shows what was written over it: a bar of progress is its last state. @param {string} text */
function overwritten(text) {
  if (!text.includes("\r")) return text;
  return text
    .split("\n")
    .map((line) => {
      const whole = line.replace(/\r+$/, "");
      return whole.slice(whole.lastIndexOf("\r") + 1);
    })
    .join("\n");
}

/** Text is never hidden: what a command wrote is there to be read. @param {import("./paint.js").Look} look @param {string} codes */
function dress(look, codes) {
  const numbers = codes.split(/[;:]/).map(Number);
  for (let at = 0; at < numbers.length; at++) {
    const code = numbers[at];
    if (code === 0) Object.assign(look, plain());
    else if (code === 1) look.bold = true;
    else if (code === 2) look.dim = true;
    else if (code === 3) look.italic = true;
    else if (code === 4) look.underline = true;
    else if (code === 7) look.inverse = true;
    else if (code === 9) look.strike = true;
    else if (code === 22) look.bold = look.dim = false;
    else if (code === 23) look.italic = false;
    else if (code === 24) look.underline = false;
    else if (code === 27) look.inverse = false;
    else if (code === 29) look.strike = false;
    else if (code >= 30 && code < 38) look.fg = code - 30;
    else if (code === 39) look.fg = null;
    else if (code >= 40 && code < 48) look.bg = code - 40;
    else if (code === 49) look.bg = null;
    else if (code >= 90 && code < 98) look.fg = code - 82;
    else if (code >= 100 && code < 108) look.bg = code - 92;
    else if (code === 38 || code === 48) {
      const colour = numbers[at + 1] === 5 ? palette(byte(numbers[at + 2])) : rgb((byte(numbers[at + 2]) << 16) | (byte(numbers[at + 3]) << 8) | byte(numbers[at + 4]));
      if (code === 38) look.fg = colour;
      else look.bg = colour;
      at += numbers[at + 1] === 5 ? 2 : 4;
    }
  }
}

/** @param {number | undefined} value */
function byte(value) {
  return Math.min(Math.max(Math.trunc(value || 0), 0), 255);
}
