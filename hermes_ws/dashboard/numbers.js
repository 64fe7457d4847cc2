// Numbers as a person reads them.

import { text } from "./texts.js";

const STEPS = /** @type {const} */ (["KiB", "MiB", "GiB", "TiB"]);

/** @param {number} value */
export function bytes(value) {
  let left = value / 1024;
  let step = 0;
  while (left >= 1024 && step < STEPS.length - 1) {
    left /= 1024;
    step += 1;
  }
  return `${left.toLocaleString(undefined, { maximumFractionDigits: left < 10 ? 1 : 0 })} ${STEPS[step]}`;
}

/** @param {number} seconds */
export function span(seconds) {
  const parts = /** @type {[number, string][]} */ ([
    [86_400, "unit.days"],
    [3600, "unit.hours"],
    [60, "unit.minutes"],
  ]);
  for (const [length, unit] of parts) if (seconds >= length) return `${(seconds / length).toLocaleString(undefined, { maximumFractionDigits: 1 })} ${text(unit)}`;
  return `${Math.round(seconds)} ${text("unit.seconds")}`;
}

/** What a large number of a unit is, in brackets; nothing for one that is read at once. @param {number} value @param {string} unit */
export function inUnits(value, unit) {
  if (unit === "bytes" && value >= 1024) return `(${bytes(value)})`;
  if (unit === "seconds" && value >= 120) return `(${span(value)})`;
  return "";
}

/** @param {number} value */
export function count(value) {
  return value.toLocaleString();
}

/** @param {number | null | undefined} dollars */
export function money(dollars) {
  return dollars === null || dollars === undefined ? "–" : `$${dollars.toFixed(dollars < 1 ? 4 : 2)}`;
}

/** @param {number} seconds since 1970 */
export function moment(seconds) {
  return new Date(seconds * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}
