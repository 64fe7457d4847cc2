// What a terminal is sent for a key, as xterm would send it.

const ESCAPE = "\x1b";

/** Keys of the cursor, by their last letter: `ESC [ A`, and `ESC O A` where the program asked for that. */
const CURSOR = Object.freeze({ ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D", End: "F", Home: "H" });

/** Keys with a number: `ESC [ 3 ~`. */
const NUMBERED = Object.freeze({ Insert: 2, Delete: 3, PageUp: 5, PageDown: 6, F5: 15, F6: 17, F7: 18, F8: 19, F9: 20, F10: 21, F11: 23, F12: 24 });

/** The first four function keys: `ESC O P`. */
const FUNCTION = Object.freeze({ F1: "P", F2: "Q", F3: "R", F4: "S" });

/** Keys with Control that are no letters. */
const CONTROL = Object.freeze({ " ": "\0", "@": "\0", "[": ESCAPE, "\\": "\x1c", "]": "\x1d", "^": "\x1e", _: "\x1f", "/": "\x1f", "?": "\x7f", 2: "\0", 3: ESCAPE, 4: "\x1c", 5: "\x1d", 6: "\x1e", 7: "\x1f", 8: "\x7f" });

/**
 * @param {{key: string, ctrlKey: boolean, altKey: boolean, shiftKey: boolean, metaKey: boolean}} event
 * @param {boolean} application whether the program asked for the other codes of the cursor keys
 * @returns {string | null} null for what is no key of a terminal: text that the browser is to put in, keys of the system
 */
export function sequence(event, application) {
  const { key, ctrlKey, altKey, shiftKey, metaKey } = event;
  if (metaKey) return null;
  const held = 1 + (shiftKey ? 1 : 0) + (altKey ? 2 : 0) + (ctrlKey ? 4 : 0);
  const cursor = /** @type {Record<string, string>} */ (CURSOR)[key];
  if (cursor) return held > 1 ? `${ESCAPE}[1;${held}${cursor}` : ESCAPE + (application ? "O" : "[") + cursor;
  const number = /** @type {Record<string, number>} */ (NUMBERED)[key];
  if (number) return held > 1 ? `${ESCAPE}[${number};${held}~` : `${ESCAPE}[${number}~`;
  const named = /** @type {Record<string, string>} */ (FUNCTION)[key];
  if (named) return held > 1 ? `${ESCAPE}[1;${held}${named}` : `${ESCAPE}O${named}`;
  const alt = altKey ? ESCAPE : "";
  switch (key) {
    case "Enter":
      return `${alt}\r`;
    case "Tab":
      return shiftKey ? `${ESCAPE}[Z` : `${alt}\t`;
    case "Escape":
      return alt + ESCAPE;
    case "Backspace":
      return alt + (ctrlKey ? "\b" : "\x7f");
  }
  if ([...key].length !== 1) return null;
  // AltGr makes characters, and tells both keys: what it made is text.
  if (ctrlKey && altKey) return /^[a-z]$/i.test(key) ? alt + control(key) : null;
  if (ctrlKey) return control(key);
  // Without modifiers it is text, and comes by the input: dead keys and input methods included.
  return altKey ? alt + key : null;
}

/** @param {string} key */
function control(key) {
  const letter = key.toUpperCase();
  if (letter >= "A" && letter <= "Z") return String.fromCharCode(letter.charCodeAt(0) - 64);
  return /** @type {Record<string, string>} */ (CONTROL)[key] ?? "";
}

/** What is pasted: lines end as the Enter key ends them, and a program that can tell pasted text is told. @param {string} text @param {boolean} bracketed */
export function pasted(text, bracketed) {
  const lines = text.replace(/\r?\n/g, "\r");
  // The end of a paste cannot stand in it, or what follows it would be taken for keys.
  return bracketed ? `${ESCAPE}[200~${lines.replaceAll(`${ESCAPE}[201~`, "")}${ESCAPE}[201~` : lines;
}
