// Notifications of the browser, for those who asked for them: a question waits while nobody looks at the page.

import { element, put } from "./dom.js";
import { text } from "./texts.js";

const KEY = "hermes-ws.notify";

export class Notices {
  constructor() {
    this.button = element("button.link", { type: "button", onclick: () => this.toggle() });
    this.button.toggleAttribute("hidden", !("Notification" in window));
    this.draw();
  }

  get wanted() {
    return "Notification" in window && Notification.permission === "granted" && localStorage.getItem(KEY) === "yes";
  }

  async toggle() {
    if (this.wanted) localStorage.removeItem(KEY);
    else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(KEY, "yes");
    this.draw();
  }

  draw() {
    put(this.button, text(this.wanted ? "notifyOff" : "notifyOn"));
    this.button.setAttribute("aria-pressed", String(this.wanted));
  }

  /**
   * Nothing of the question itself: a notification may be seen by others.
   * @param {{id: string, profile: string}} question
   * @param {() => void} show
   */
  tell(question, show) {
    if (!this.wanted || !document.hidden) return;
    const told = new Notification(text("waitsFor"), { body: question.profile, tag: question.id });
    told.onclick = () => {
      window.focus();
      show();
      told.close();
    };
  }
}
