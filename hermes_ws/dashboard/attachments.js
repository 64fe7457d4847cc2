// Files that go with a message. They are read here and sent as text, since that is what a message is made of.

import { element, put } from "./dom.js";
import { text } from "./texts.js";

/** Characters of one file: with the message it must stay below what an input may be. */
const LONGEST = 200_000;

/** @typedef {{name: string, text: string}} Attachment */

export class Attachments {
  /** @param {HTMLElement} place where files may be dropped @param {(problem: string) => void} refuse */
  constructor(place, refuse) {
    this.refuse = refuse;
    /** @type {Attachment[]} */
    this.files = [];
    this.list = element("ul.attachments", { "aria-label": text("attached") });
    this.pick = /** @type {HTMLInputElement} */ (element("input", { type: "file", multiple: true, hidden: true, "aria-label": text("attach") }));
    this.pick.addEventListener("change", () => {
      this.add(this.pick.files);
      this.pick.value = "";
    });
    place.addEventListener("dragover", (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      place.classList.add("dropping");
    });
    place.addEventListener("dragleave", () => place.classList.remove("dropping"));
    place.addEventListener("drop", (event) => {
      place.classList.remove("dropping");
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault();
      this.add(event.dataTransfer.files);
    });
    place.addEventListener("paste", (event) => {
      if (!event.clipboardData?.files.length) return;
      event.preventDefault();
      this.add(event.clipboardData.files);
    });
  }

  /** @param {FileList | null | undefined} files */
  async add(files) {
    for (const file of [...(files ?? [])]) {
      const read = await readText(file);
      if (read === null) this.refuse(`${file.name}: ${text("attachTextOnly")}`);
      else this.files.push({ name: file.name, text: read });
    }
    this.draw();
  }

  draw() {
    put(
      this.list,
      this.files.map((file) =>
        element(
          "li.chip",
          {},
          element("span", { dir: "auto" }, file.name),
          element(
            "button.link",
            {
              type: "button",
              "aria-label": `${text("detach")} ${file.name}`,
              onclick: () => {
                this.files = this.files.filter((each) => each !== file);
                this.draw();
              },
            },
            "×",
          ),
        ),
      ),
    );
  }

  /** The message with its files, as blocks; null when there are none. @param {string} said */
  blocks(said) {
    if (!this.files.length) return null;
    return [said, ...this.files.map(fenced)].filter(Boolean).map((each) => ({ type: /** @type {const} */ ("text"), text: each }));
  }

  clear() {
    this.files = [];
    this.draw();
  }
}

/** A fence longer than any in the file, so that the file cannot end it. @param {Attachment} file */
function fenced(file) {
  const longest = Math.max(2, ...[...file.text.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  return `${file.name}:\n${fence}\n${file.text}\n${fence}`;
}

/** @param {File} file */
async function readText(file) {
  if (file.size > LONGEST) return null;
  try {
    const read = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return read.includes("\0") ? null : read;
  } catch {
    return null;
  }
}
