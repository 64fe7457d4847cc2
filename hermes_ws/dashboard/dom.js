// Making elements. Text is always text: nothing that comes from the server is read as HTML here.

/**
 * @typedef {string | Node | null | undefined | false} Child
 * @param {string} tag  an element name, with classes after dots: "div.row.open"
 * @param {Record<string, any>} [attributes]  `on…` are listeners; true and false set and leave out;
 *     `hue` is the colour of a profile
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const made = document.createElement(name || "div");
  if (classes.length) made.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    // Through the object model: the content security policy forbids style attributes.
    if (key === "hue") made.style.setProperty("--hue", String(value));
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  put(made, ...children);
  return made;
}

/**
 * Replace what an element holds.
 * @param {Element} parent
 * @param {...(Child | Child[])} children
 */
export function put(parent, ...children) {
  parent.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false).map(node));
}

/**
 * Make these the children, moving only those that stand elsewhere: what has the focus keeps it.
 * @param {Element} parent
 * @param {Element[]} children
 */
export function sync(parent, children) {
  const wanted = new Set(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  let next = parent.firstElementChild;
  for (const child of children) {
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
  }
}

/** @param {any} child */
function node(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

/** A colour for a profile that is always the same one, and readable on both themes. @param {string} name */
export function hue(name) {
  let sum = 7;
  for (const character of name) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 360;
  return sum;
}

/** @param {number} seconds since 1970 */
export function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}
