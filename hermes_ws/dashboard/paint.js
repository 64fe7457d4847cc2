// Text with the colours and styles of a terminal, as elements. Through classes and the object model: the content
// security policy forbids style attributes.

/**
 * @typedef {number | string | null} Colour  0 to 15 of the palette, a colour in CSS, or the default
 * @typedef {{fg: Colour, bg: Colour, bold: boolean, dim: boolean, italic: boolean, underline: boolean, inverse: boolean,
 *            strike: boolean, hidden: boolean}} Look
 */

/** Marks that turn the direction of what follows them around: text that was written by whoever is not looked at through them. */
const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

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
  const shown = text.replace(TURNING, "");
  if (!more && same(look) === PLAIN) return document.createTextNode(shown);
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
  made.append(shown);
  return made;
}
