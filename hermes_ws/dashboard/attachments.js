// Pictures and files that go with a message: dropped, pasted or picked, and sent ahead of it.

import { element, put } from "./dom.js";
import { text } from "./texts.js";

/** Files of one message, as many as the server takes. */
const MOST = 20;

/** @typedef {{file: File, name: string, blob: string | null}} Attachment */

export class Attachments {
  /**
   * @param {HTMLElement} place where files may be dropped
   * @param {(file: File) => Promise<string>} send gives the name of what was sent
   * @param {(problem: string) => void} refuse
   */
  constructor(place, send, refuse) {
    this.send = send;
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
      if (this.files.length >= MOST) return this.refuse(text("attachMost"));
      /** @type {Attachment} */
      const added = { file, name: file.name || text("file"), blob: null };
      this.files.push(added);
      this.draw();
      try {
        added.blob = await this.send(file);
      } catch (error) {
        this.refuse(`${added.name}: ${/** @type {Error} */ (error).message}`);
        this.files = this.files.filter((each) => each !== added);
      }
      this.draw();
    }
  }

  draw() {
    put(
      this.list,
      this.files.map((file) =>
        element(
          "li.chip",
          {},
          element("span", { dir: "auto" }, file.name),
          file.blob === null && element("span.soft", { role: "status" }, text("sendingFile")),
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

  /** Whether all of them have been sent. */
  get whole() {
    return this.files.every((file) => file.blob !== null);
  }

  /** As a message names them. */
  named() {
    return this.files.map((file) => ({ blob: file.blob ?? "", media_type: TYPE.test(file.file.type) ? file.file.type : "application/octet-stream", name: file.name.slice(0, 255) }));
  }

  clear() {
    this.files = [];
    this.draw();
  }
}

/** What the server takes for a media type; browsers add parameters, or say nothing. */
const TYPE = /^[a-z0-9.+-]+\/[a-z0-9.+-]+$/;
