// The rows of a conversation in leaves, like those of a book: the ones far from what is seen are empty, with their size kept.

import { element } from "./dom.js";
import { Nearby } from "./nearby.js";

/** Rows of a leaf. A browser looks at each leaf in each frame, and at the rows of those that are not empty. */
const ROWS = 50;

/** Rows that are kept at once wherever they are: a conversation of usual length is searched by the browser as a whole. */
const MOST = 600;

/** @typedef {{root: HTMLElement, ids: Set<string>, heights: Map<string, number> | null}} Leaf `heights` of its rows while it is empty */

export class Leaves {
  /** @param {HTMLElement} scroller @param {(id: string) => HTMLElement | null} draw makes a row anew @param {(id: string) => void} forget */
  constructor(scroller, draw, forget) {
    this.draw = draw;
    this.forget = forget;
    this.root = element("div.items");
    /** @type {Leaf[]} */
    this.all = [];
    /** @type {Map<string, Leaf>} */
    this.of = new Map();
    this.drawn = 0;
    this.nearby = new Nearby(scroller, () => this.shed());
  }

  /** @param {string} id @param {HTMLElement} row */
  append(id, row) {
    let leaf = this.all.at(-1);
    if (!leaf || leaf.heights || leaf.ids.size >= ROWS) {
      leaf = this.fresh();
      this.all.push(leaf);
      this.root.append(leaf.root);
    }
    this.put(leaf, id, row);
  }

  /** Rows that come before all that are here. @param {[string, HTMLElement][]} rows */
  front(rows) {
    /** @type {Leaf[]} */
    const made = [];
    rows.forEach(([id, row], at) => {
      if (at % ROWS === 0) made.push(this.fresh());
      this.put(made[made.length - 1], id, row);
    });
    this.all.unshift(...made);
    this.root.prepend(...made.map((leaf) => leaf.root));
  }

  /** @param {Leaf} leaf @param {string} id @param {HTMLElement} row */
  put(leaf, id, row) {
    leaf.ids.add(id);
    leaf.root.append(row);
    this.of.set(id, leaf);
    this.drawn += 1;
  }

  /** @param {string} id */
  delete(id) {
    const leaf = this.of.get(id);
    if (!leaf) return;
    this.of.delete(id);
    leaf.ids.delete(id);
    if (leaf.heights) leaf.root.style.height = `${(leaf.root.offsetHeight * leaf.ids.size) / (leaf.ids.size + 1)}px`;
    else this.drawn -= 1;
    if (leaf.ids.size) return;
    this.nearby.leave(leaf.root);
    leaf.root.remove();
    this.all.splice(this.all.indexOf(leaf), 1);
  }

  /** @returns {Leaf} */
  fresh() {
    /** @type {Leaf} */
    const leaf = { root: element("ol.leaf"), ids: new Set(), heights: null };
    this.nearby.watch(leaf.root, (near) => near && this.fill(leaf));
    return leaf;
  }

  /** Empty what is far away; nobody's selection, focus or unfolded call is taken from them, nor what still grows. */
  shed() {
    if (this.drawn <= MOST || getSelection()?.isCollapsed === false) return;
    for (const leaf of this.all) {
      const height = this.nearby.far(leaf.root);
      if (leaf.heights || height === null || leaf.root.contains(document.activeElement)) continue;
      if (leaf.root.querySelector(":scope > .writing, :scope > .item > details[open]")) continue;
      const rows = /** @type {HTMLElement[]} */ ([...leaf.root.children]);
      leaf.heights = new Map(rows.map((row) => [row.dataset.id ?? "", row.offsetHeight]));
      leaf.root.style.height = `${height}px`;
      leaf.root.replaceChildren();
      leaf.ids.forEach(this.forget);
      this.drawn -= leaf.ids.size;
    }
  }

  /** @param {Leaf} leaf */
  fill(leaf) {
    const { heights } = leaf;
    if (!heights) return;
    leaf.heights = null;
    leaf.root.style.removeProperty("height");
    for (const id of leaf.ids) {
      const row = this.draw(id);
      // Until it is laid out it has the height that it had, so that nothing jumps.
      row?.style.setProperty("contain-intrinsic-size", `auto ${heights.get(id) ?? 0}px`);
      if (row) leaf.root.append(row);
    }
    this.drawn += leaf.ids.size;
  }
}
