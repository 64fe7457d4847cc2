// Text with the colours and styles of a terminal, as elements. Through classes and the object model: the content
// security policy forbids style attributes.

/**
 * @typedef {number | string | null} Colour  0 to 15 of the palette, a colour in CSS, or the default
 * @typedef {{fg: Colour, bg: Colour, bold: boolean, dim: boolean, italic: boolean, underline: boolean, inverse: boolean,
 *            strike: boolean, hidden: boolean}} Look
 */

/** Marks that turn the direction of what follows them around, and characters that show nothing: a text with them is not what it looks like. */
const HIDDEN = /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu;

/** Control characters that neither a line nor a column is made of. */
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f]/g;

/** A text in which everything can be seen that is in it: what somebody is asked to allow is to be what they read. @param {string} said */
export function visible(said) {
  return said
    .replace(HIDDEN, (mark) => `⟨U+${(mark.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`)
    .replace(CONTROL, (mark) => (mark === "\x7f" ? "␡" : String.fromCodePoint(0x2400 + mark.charCodeAt(0))));
}

/** A text without them, for where each character has its place. @param {string} said */
export function straight(said) {
  return said.replace(HIDDEN, "");
}

/** @returns {Look} */
export function plain() {
  return { fg: null, bg: null, bold: false, dim: false, italic: false, underline: false, inverse: false, strike: false, hidden: false };
}

/** One of the 256 colours of a terminal. @param {number} number @returns {Colour} */
export function palette(number) {
  if (number < 16) return number;
  if (number >= 232) return grey(8 + 10 * (number - 232));
  const level = (/** @type {number} */ step) => (step ? 55 + 40 * step : 0);
  const cube = number - 16;
  return rgb((level(Math.floor(cube / 36)) << 16) | (level(Math.floor(cube / 6) % 6) << 8) | level(cube % 6));
}

/** @param {number} value */
function grey(value) {
  return rgb((value << 16) | (value << 8) | value);
}

/** @param {number} value red, green and blue in one number */
export function rgb(value) {
  return `#${value.toString(16).padStart(6, "0")}`;
}

/** @param {Look} look */
export function same(look) {
  return `${look.fg}/${look.bg}/${+look.bold}${+look.dim}${+look.italic}${+look.underline}${+look.inverse}${+look.strike}${+look.hidden}`;
}

const PLAIN = same(plain());

/** @param {string} text @param {Look} look @param {string} [more] further classes @returns {Node} */
export function painted(text, look, more = "") {
  if (!more && same(look) === PLAIN) return document.createTextNode(text);
  const made = document.createElement("span");
  const classes = more ? [more] : [];
  const [fg, bg] = look.inverse ? [look.bg ?? "paper", look.fg ?? "ink"] : [look.fg, look.bg];
  // Bold makes the eight colours bright ones, as terminals do.
  const bright = typeof fg === "number" && look.bold && fg < 8 ? fg + 8 : fg;
  if (typeof bright === "number" || bright === "paper") classes.push(`fg-${bright}`);
  else if (bright) made.style.color = bright;
  if (typeof bg === "number" || bg === "ink") classes.push(`bg-${bg}`);
  else if (bg) made.style.backgroundColor = bg;
  for (const name of /** @type {const} */ (["bold", "dim", "italic", "underline", "strike", "hidden"])) if (look[name]) classes.push(`is-${name}`);
  if (classes.length) made.className = classes.join(" ");
  made.append(text);
  return made;
}
