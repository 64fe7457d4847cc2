// Which questions are open: those that are sent to this page, and those that only another program can answer.

import { Soon } from "./soon.js";

/** The kind that is sent to the program alone that offered the tool; here it is shown, since its session waits. */
const ELSEWHERE = "client_tool";

export class Asking {
  /**
   * @param {import("./gateway.js").Gateway} gateway
   * @param {import("./inbox.js").Inbox} inbox
   * @param {{title: (session_id: string) => string | null, fresh: (question: {id: string, profile: string, session_id: string}) => void}} page
   */
  constructor(gateway, inbox, page) {
    this.gateway = gateway;
    this.inbox = inbox;
    this.page = page;
    /** Those about which more is being asked, and those of them that were settled meanwhile. @type {Set<string>} */
    this.asking = new Set();
    /** @type {Set<string>} */
    this.answered = new Set();
    this.soon = new Soon(() => this.look(), 300);
  }

  /** @param {{id: string, kind: string, params: any}} question as it was sent */
  async take(question) {
    this.asking.add(question.id);
    const row = (await this.rows()).find((each) => each.id === question.id);
    await this.show({ ...question, profile: row?.profile, deadline: row?.deadline });
  }

  /** @param {{id: string, kind: string, params: any, profile?: string, deadline?: number | null}} question */
  async show(question) {
    const { id } = question;
    const { session_id } = question.params;
    const fresh = !this.inbox.questions.has(id);
    this.asking.add(id);
    const { profile, title } = await this.whose(session_id, question.profile);
    this.asking.delete(id);
    // It may have been answered elsewhere while that was looked up.
    if (this.answered.delete(id)) return;
    if (fresh) this.page.fresh({ id, profile, session_id });
    this.inbox.add({ ...question, profile, title });
  }

  /** @param {string} id @param {string} [how] */
  settled(id, how) {
    if (this.asking.has(id)) this.answered.add(id);
    if (how === "expired") this.inbox.expire(id);
    else this.inbox.remove(id);
  }

  /** What waits for another program, and what does no longer. */
  async look() {
    const waits = (await this.rows()).filter((row) => row.kind === ELSEWHERE);
    for (const { id, kind } of this.inbox.questions.values()) if (kind === ELSEWHERE && !waits.some((row) => row.id === id)) this.inbox.remove(id);
    for (const row of waits) if (!this.inbox.questions.has(row.id)) await this.show(row);
  }

  async rows() {
    const told = await this.gateway.call("question.list", { profile: "*" }).catch(() => null);
    return told?.questions ?? [];
  }

  /** Of which profile a session is, and its name; the list may not hold it. @param {string} session_id @param {string} [profile] */
  async whose(session_id, profile) {
    const title = this.page.title(session_id);
    if (profile !== undefined && title !== null) return { profile, title };
    const told = await this.gateway.call("session.info", { session_id }).catch(() => null);
    return { profile: profile ?? told?.profile ?? "", title: told?.title ?? "" };
  }
}
