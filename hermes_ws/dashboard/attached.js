// A picture that is shown, or a file that is named and saved when asked for. Fetched with the token, never by address.

import { element } from "./dom.js";
import { text } from "./texts.js";

/** What is shown as a picture; another kind, whatever it calls itself, is a file. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/**
 * @param {{type: string, blob: string, media_type: string, name: string}} block
 * @param {(blob: string, type: string) => Promise<Blob>} content
 */
export function attached(block, content) {
  if (block.type !== "image" || !PICTURES.has(block.media_type)) {
    const save = async () => {
      const address = URL.createObjectURL(await content(block.blob, "application/octet-stream"));
      element("a", { href: address, download: block.name }).click();
      URL.revokeObjectURL(address);
    };
    return element("button.link.file", { type: "button", dir: "auto", onclick: () => save().catch(() => undefined) }, `📎 ${block.name || text("file")}`);
  }
  const image = /** @type {HTMLImageElement} */ (element("img", { alt: block.name || text("picture") }));
  // Fetched when it comes near: a transcript may hold hundreds.
  const sight = new IntersectionObserver((seen) => {
    if (!seen.some((each) => each.isIntersecting)) return;
    sight.disconnect();
    content(block.blob, block.media_type)
      .then((bytes) => {
        image.addEventListener("load", () => URL.revokeObjectURL(image.src), { once: true });
        image.src = URL.createObjectURL(bytes);
      })
      .catch(() => image.classList.add("missing"));
  });
  sight.observe(image);
  return image;
}
