// What is near to what is seen of a scroller, and what is far from it.

/** Pixels above and below what is seen that count as near: a turn of the wheel does not outrun them. */
const MARGIN = 2000;

export class Nearby {
  /** @param {HTMLElement} scroller @param {() => void} moved called when something came near or went away */
  constructor(scroller, moved) {
    /** @type {WeakMap<Element, (near: boolean) => void>} */
    this.told = new WeakMap();
    /** Heights of those that are far. @type {WeakMap<Element, number>} */
    this.heights = new WeakMap();
    this.observer = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting, boundingClientRect } of entries) {
          if (isIntersecting) this.heights.delete(target);
          else this.heights.set(target, boundingClientRect.height);
          this.told.get(target)?.(isIntersecting);
        }
        moved();
      },
      { root: scroller, rootMargin: `${MARGIN}px 0px` },
    );
  }

  /** @param {Element} place @param {(near: boolean) => void} tell */
  watch(place, tell) {
    this.told.set(place, tell);
    this.observer.observe(place);
  }

  /** @param {Element} place */
  leave(place) {
    this.observer.unobserve(place);
  }

  /** The height of what is known to be far; null for what is near. @param {Element} place */
  far(place) {
    return this.heights.get(place) ?? null;
  }
}
