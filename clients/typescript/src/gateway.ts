/**
 * A client for one hermes-ws server: methods, events and questions over one WebSocket, typed by the contract.
 *
 * It resumes by itself: when the socket breaks, the threads that are followed are subscribed again after the last
 * cursor that was seen, so that nothing is missed and nothing comes twice. Runs in browsers and in Node 22 and later.
 */

import {
  CLOSE_CODES,
  PROTOCOL,
  type BackendGatewayEventMap,
  type ErrorType,
  type EventType,
  type GatewayEvent,
  type JsonValue,
  type QuestionKind,
  type RpcMethod,
  type RpcMethods,
  type ServerRequestMap,
} from "./contract.ts";

export type * from "./contract.ts";
export { CLOSE_CODES, CONTRACT_DIGEST, PROTOCOL } from "./contract.ts";

/** What the server answered instead of a result. */
export class RpcError extends Error {
  readonly code: number;
  readonly type: ErrorType;
  readonly hint: string;
  readonly data: Record<string, JsonValue>;

  constructor(error: { code: number; message: string; data?: Record<string, JsonValue> }) {
    super(error.message);
    this.name = "RpcError";
    this.code = error.code;
    this.data = error.data ?? {};
    this.type = (this.data["type"] ?? "internal") as ErrorType;
    this.hint = String(this.data["hint"] ?? "");
  }
}

/** The connection went before the answer came: whether it was done is known to the server alone. */
export class OutcomeUnknown extends Error {
  constructor(method: string) {
    super(`The connection ended before ${method} was answered.`);
    this.name = "OutcomeUnknown";
  }
}

export type Answerer<K extends QuestionKind> = (
  params: ServerRequestMap[K]["params"],
  id: string,
) => ServerRequestMap[K]["result"] | Promise<ServerRequestMap[K]["result"]>;

export type Listener<T extends EventType> = (event: GatewayEvent<T>) => void;

export interface Options {
  /** The launch token, a named token, or a session token. Sent as a sub-protocol, never in the address. */
  token: string;
  name?: string;
  version?: string;
  /** What answers the questions of each kind; a kind without an entry is not asked here. */
  questions?: { [K in QuestionKind]?: Answerer<K> };
  live?: "full" | "coalesced" | "none";
  /** Milliseconds before the first attempt to come back; doubled each time, up to 30 seconds. 0: do not come back. */
  retryMs?: number;
}

interface Followed {
  session_id: string;
  thread_id: string;
  cursor: string;
}

interface Waiting {
  method: string;
  resolve: (result: never) => void;
  reject: (error: Error) => void;
}

type Incoming = {
  id?: number | string | null;
  method?: string;
  params?: Record<string, JsonValue>;
  result?: JsonValue;
  error?: { code: number; message: string; data?: Record<string, JsonValue> };
};

const LONGEST_PAUSE_MS = 30_000;

export class Gateway {
  /** The payload of `gateway.ready`, of the latest connection. */
  ready!: BackendGatewayEventMap["gateway.ready"];

  readonly #url: string;
  readonly #options: Options;
  readonly #waiting = new Map<number, Waiting>();
  readonly #listeners = new Map<string, Set<(event: GatewayEvent) => void>>();
  readonly #followed = new Map<string, Followed>();
  #socket: WebSocket | undefined;
  #next = 0;
  #closed = false;

  private constructor(url: string, options: Options) {
    this.#url = url;
    this.#options = options;
  }

  /** Connect and say what this client can do. Rejects when the server cannot be reached or refuses. */
  static async connect(url: string, options: Options): Promise<Gateway> {
    const gateway = new Gateway(url, options);
    await gateway.#open();
    return gateway;
  }

  /** Call a method. Rejects with `RpcError`, or with `OutcomeUnknown` when the connection went before the answer. */
  call<M extends RpcMethod>(method: M, params: RpcMethods[M]["params"]): Promise<RpcMethods[M]["result"]> {
    const socket = this.#socket;
    if (socket === undefined || socket.readyState !== WebSocket.OPEN) {
      return Promise.reject(new Error("not connected"));
    }
    const id = ++this.#next;
    const answer = new Promise<RpcMethods[M]["result"]>((resolve, reject) => {
      this.#waiting.set(id, { method, resolve, reject });
    });
    socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    return answer;
  }

  /** Hear of events of a type. Returns what ends it. */
  on<T extends EventType>(type: T, listener: Listener<T>): () => void {
    const heard = listener as (event: GatewayEvent) => void;
    const listeners = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, listeners.add(heard));
    return () => void listeners.delete(heard);
  }

  /** Follow a thread, and go on following it after every reconnection. Resolves with the snapshot. */
  async follow(
    params: RpcMethods["thread.subscribe"]["params"],
  ): Promise<RpcMethods["thread.subscribe"]["result"]> {
    const snapshot = await this.call("thread.subscribe", params);
    const { session_id, thread_id, cursor } = snapshot;
    const start = params.after && snapshot.position === "ok" ? params.after : cursor;
    this.#followed.set(`${session_id} ${thread_id}`, { session_id, thread_id, cursor: start });
    return snapshot;
  }

  /** Stop following a thread. */
  async leave(session_id: string, thread_id = "main"): Promise<void> {
    this.#followed.delete(`${session_id} ${thread_id}`);
    await this.call("thread.unsubscribe", { session_id, thread_id });
  }

  /** Hang up for good. */
  close(): void {
    this.#closed = true;
    this.#socket?.close(1000);
  }

  #open(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(this.#url, ["hermes.v1", `hermes.bearer.${this.#options.token}`]);
      let open = false;
      this.#socket = socket;
      socket.onerror = () => reject(new Error(`cannot connect to ${this.#url}`));
      socket.onclose = (event) => {
        reject(new Error(`the server hung up (${event.code} ${event.reason})`));
        this.#lost();
        if (open) this.#comeBack(event.code);
      };
      socket.onmessage = (event) => {
        const said = JSON.parse(String(event.data)) as Incoming | Incoming[];
        for (const message of Array.isArray(said) ? said : [said]) this.#take(message);
        if (!open && this.ready !== undefined) {
          open = true;
          this.#introduce().then(resolve, reject);
        }
      };
    });
  }

  async #introduce(): Promise<void> {
    const { name = "hermes-ws-client", version = "", live = "full", questions = {} } = this.#options;
    const client = { name, version };
    await this.call("client.capabilities", {
      client,
      protocol: PROTOCOL,
      server_requests: Object.keys(questions),
      live,
    });
    for (const { session_id, thread_id, cursor } of this.#followed.values()) {
      await this.call("thread.subscribe", { session_id, thread_id, after: cursor });
    }
  }

  #lost(): void {
    for (const { method, reject } of this.#waiting.values()) reject(new OutcomeUnknown(method));
    this.#waiting.clear();
  }

  #comeBack(code: number): void {
    const known = CLOSE_CODES[code as keyof typeof CLOSE_CODES];
    const first = this.#options.retryMs ?? 250;
    if (this.#closed || first === 0 || (known !== undefined && known.then !== "resume")) return;
    const attempt = (pause: number): void => {
      // Not all at once: those who lost the same server come back spread out.
      const wait = pause * (0.5 + Math.random() / 2);
      setTimeout(() => {
        if (!this.#closed) this.#open().catch(() => attempt(Math.min(pause * 2, LONGEST_PAUSE_MS)));
      }, wait);
    };
    attempt(first);
  }

  #take(message: Incoming): void {
    if (message.method === "event") this.#event(message.params as unknown as GatewayEvent);
    else if (message.method !== undefined) void this.#asked(message);
    else this.#answered(message);
  }

  #answered(message: Incoming): void {
    const waiting = this.#waiting.get(Number(message.id));
    if (waiting === undefined) return;
    this.#waiting.delete(Number(message.id));
    if (message.error !== undefined) waiting.reject(new RpcError(message.error));
    else waiting.resolve(message.result as never);
  }

  #event(event: GatewayEvent): void {
    if (event.type === "gateway.ready") this.ready = event.payload;
    const followed = this.#followed.get(`${event.session_id} ${event.thread_id}`);
    if (followed !== undefined && event.cursor != null) followed.cursor = event.cursor;
    for (const listener of this.#listeners.get(event.type) ?? []) listener(event);
  }

  async #asked(message: Incoming): Promise<void> {
    const answerers = this.#options.questions as Record<string, Answerer<QuestionKind> | undefined> | undefined;
    const answerer = answerers?.[String(message.method)];
    if (answerer === undefined) return;
    const result = await answerer(message.params as never, String(message.id));
    this.#socket?.send(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }));
  }
}
