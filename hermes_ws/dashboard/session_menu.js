// What can be done with a session as a whole.

import { element } from "./dom.js";
import { text } from "./texts.js";

/** @param {import("./pane.js").Pane} pane */
export function sessionMenu(pane) {
  const pick = (/** @type {string} */ label, /** @type {() => void} */ act) =>
    element(
      "button",
      {
        type: "button",
        onclick: () => {
          details.removeAttribute("open");
          act();
        },
      },
      text(label),
    );
  const pin = pick("pin", () => pane.change("pin", { pinned: true }));
  const unpin = pick("unpin", () => pane.change("pin", { pinned: false }));
  const archive = pick("archive", () => pane.change("archive", { archived: true }));
  const unarchive = pick("unarchive", () => pane.change("archive", { archived: false }));
  const details = element(
    "details.menu",
    {},
    element("summary", { "aria-label": text("actions") }, "⋯"),
    element(
      "div",
      {},
      pick("rename", () => {
        const title = prompt(text("newTitle"), pane.conversation.info.title ?? "");
        if (title !== null) pane.change("rename", { title: title.trim() || null });
      }),
      pick("retry", () => pane.change("retry", {}, () => confirm(text("retrySure")))),
      pick("compact", async () => {
        const done = await pane.change("compress", {});
        if (done && !done.result.compressed) pane.note(text("nothingToCompact"));
      }),
      pin,
      unpin,
      archive,
      unarchive,
      pick("removeSession", async () => {
        // The server does as it is told: it is the page that asks.
        if (!confirm(text("removeSure"))) return;
        if (await pane.change("delete", {})) pane.page.close(pane);
      }),
    ),
  );
  // What it is already is not offered.
  details.addEventListener("toggle", () => {
    const { pinned, archived } = pane.conversation.info;
    pin.toggleAttribute("hidden", pinned === true);
    unpin.toggleAttribute("hidden", pinned !== true);
    archive.toggleAttribute("hidden", archived === true);
    unarchive.toggleAttribute("hidden", archived !== true);
  });
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    details.removeAttribute("open");
    details.querySelector("summary")?.focus();
  });
  return details;
}
