// The WebSocket: requests and replies, events, questions; comes back by itself and says how it stands.

import { text } from "./texts.js";

/** @typedef {import("../../clients/typescript/src/contract.ts").RpcMethods} Methods */

const PROTOCOL = { major: 1, minor: 0 };

/** Milliseconds before the first attempt to come back; doubled up to the longest. */
const FIRST_PAUSE = 200;
const LONGEST_PAUSE = 10_000;

/** Milliseconds between two pings, and after which one without an answer means that nobody is there any more. */
const PING_EVERY = 25_000;
const PATIENCE = 4000;

/** From 4500 on the server says: not as you are (the credential was withdrawn, the profile is gone). */
const NOT_AS_YOU_ARE = 4500;

export class Refusal extends Error {
  /** @param {{code: number, message: string, data?: Record<string, any>}} error */
  constructor(error) {
    super(error.message);
    this.code = error.code;
    this.type = error.data?.type ?? "";
    this.hint = error.data?.hint ?? "";
    this.data = error.data ?? {};
  }
}

/** The reply will not come; whether the request happened is not known. */
export class Unknown extends Error {}

/**
 * Events: `state` {detail: "connecting" | "connected" | "offline" | "signed out"}, `ready`, `event`, `question`.
 */
export class Gateway extends EventTarget {
  /** @param {string} token */
  constructor(token) {
    super();
    this.token = token;
    /** @type {WebSocket | null} */
    this.socket = null;
    /** @type {Map<number, {resolve: (value: any) => void, reject: (error: Error) => void}>} */
    this.waiting = new Map();
    this.next = 0;
    this.pause = FIRST_PAUSE;
    this.instance = "";
    /** What this connection may do. @type {Set<string>} */
    this.rights = new Set();
    /** Processes whose output is sent on this connection, and how many panels want it. @type {Map<string, number>} */
    this.followed = new Map();
    this.ended = false;
    this.up = false;
    this.back = 0;
    // After sleep, or on another network, the socket may look open for minutes and be dead.
    addEventListener("online", () => this.wake());
    document.addEventListener("visibilitychange", () => document.hidden || this.wake());
    setInterval(() => this.wake(), PING_EVERY);
  }

  /** See whether the server is there; come back at once when it is known that it was not. */
  wake() {
    if (this.ended) return;
    const { socket } = this;
    if (socket?.readyState === WebSocket.CLOSED) {
      if (this.back) this.open();
      return;
    }
    if (!socket || !this.up) return;
    const late = setTimeout(() => this.abandon(socket), PATIENCE);
    this.call("gateway.ping", {})
      .catch(() => undefined)
      .finally(() => clearTimeout(late));
  }

  /** A dead socket takes long to close: what it would still say is not waited for. @param {WebSocket} socket */
  abandon(socket) {
    if (socket !== this.socket) return;
    this.socket = null;
    socket.close();
    this.closed(0);
  }

  open() {
    clearTimeout(this.back);
    this.back = 0;
    this.tell("state", "connecting");
    const address = new URL("/ws", location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(address, ["hermes.v1", `hermes.bearer.${this.token}`]);
    this.socket = socket;
    socket.addEventListener("message", (message) => socket === this.socket && this.take(JSON.parse(message.data)));
    socket.addEventListener("close", (event) => socket === this.socket && this.closed(event.code));
  }

  close() {
    this.ended = true;
    this.socket?.close();
  }

  /**
   * @template {keyof Methods} M
   * @param {M} method
   * @param {Methods[M]["params"]} params
   * @returns {Promise<Methods[M]["result"]>}
   */
  call(method, params) {
    const socket = this.socket;
    if (!socket || socket.readyState !== WebSocket.OPEN) return Promise.reject(new Unknown(text("notConnected")));
    const id = ++this.next;
    socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }

  /** @param {any} frame */
  take(frame) {
    if (Array.isArray(frame)) {
      frame.forEach((each) => this.take(each));
    } else if (frame.method === "event") {
      if (frame.params.type === "gateway.ready") this.greet(frame.params.payload);
      else this.tell("event", frame.params);
    } else if (frame.method) {
      this.tell("question", { id: frame.id, kind: frame.method, params: frame.params });
    } else {
      const pending = this.waiting.get(frame.id);
      this.waiting.delete(frame.id);
      if (frame.error) pending?.reject(new Refusal(frame.error));
      else pending?.resolve(frame.result);
    }
  }

  /** @param {any} ready */
  async greet(ready) {
    const restarted = this.instance !== "" && this.instance !== ready.instance_id;
    this.instance = ready.instance_id;
    this.rights = new Set(ready.rights);
    try {
      await this.call("client.capabilities", {
        client: { name: "dashboard", version: ready.server.version },
        protocol: PROTOCOL,
        server_requests: true,
        live: "full",
      });
    } catch (error) {
      if (error instanceof Refusal) return this.close();
      return;
    }
    this.pause = FIRST_PAUSE;
    this.up = true;
    this.tell("state", "connected");
    this.tell("ready", { ready, restarted });
  }

  /** @param {number} code */
  async closed(code) {
    this.up = false;
    for (const { reject } of this.waiting.values()) reject(new Unknown(text("connectionLost")));
    this.waiting.clear();
    if (this.ended) return;
    this.tell("state", "offline");
    if (code >= NOT_AS_YOU_ARE || (await this.refused())) {
      this.ended = true;
      this.tell("state", "signed out");
      return;
    }
    const wait = this.pause * (0.5 + Math.random() / 2);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
    this.back = setTimeout(() => this.ended || this.open(), wait);
  }

  /** A browser does not say why an upgrade failed; a plain request with the same token does. */
  async refused() {
    try {
      const answer = await fetch("/rpc", {
        method: "POST",
        headers: { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "gateway.ping", params: {} }),
      });
      return answer.status === 401;
    } catch {
      return false;
    }
  }

  /** @param {string} type @param {any} detail */
  tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
