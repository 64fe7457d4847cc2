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

/** The connection ended, or there was none: the code is one of `CLOSE_CODES`, or one of WebSocket itself. */
export class HungUp extends Error {
  readonly code: number;

  constructor(message: string, code: number) {
    super(message);
    this.name = "HungUp";
    this.code = code;
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
  /** What answers the questions of each kind; a kind without an entry is not asked here. One that throws leaves the
   * question open for others. */
  questions?: { [K in QuestionKind]?: Answerer<K> };
  live?: "full" | "coalesced" | "none";
  /** Milliseconds before the first attempt to come back; doubled each time, up to 30 seconds. 0: do not come back. */
  retryMs?: number;
  /** Told why, when the connection is gone and it does not come back: the token holds no more, for example. */
  ended?: (why: Error) => void;
  /** Told of a thread that is followed no more, since it was gone when the connection came back. */
  dropped?: (thread: { session_id: string; thread_id: string }, why: RpcError) => void;
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

/** What the server says of a thread that cannot be followed again. */
const GONE: ReadonlySet<ErrorType> = new Set(["session_unknown", "thread_unknown", "profile_unknown", "permission_denied"]);

/** Whether it is of no use to come back as this client is. */
function isFinal(why: unknown): boolean {
  if (why instanceof RpcError) return why.type === "protocol_unsupported";
  const known = why instanceof HungUp ? CLOSE_CODES[why.code as keyof typeof CLOSE_CODES] : undefined;
  return known !== undefined && known.then !== "resume";
}

export class Gateway {
  /** The payload of `gateway.ready`, of the latest connection. */
  ready!: BackendGatewayEventMap["gateway.ready"];

  readonly #url: string;
  readonly #options: Options;
  readonly #waiting = new Map<number, Waiting>();
  readonly #listeners = new Map<string, Set<(event: GatewayEvent) => void>>();
  readonly #followed = new Map<string, Followed>();
  readonly #answers = new Map<string, Promise<object>>();
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
      let greeted = false;
      let open = false;
      this.#socket = socket;
      socket.onclose = (event) => {
        const what = greeted ? "the server hung up" : `cannot connect to ${this.#url}`;
        const why = new HungUp(`${what} (${event.code} ${event.reason})`, event.code);
        if (this.#socket === socket) this.#lost();
        reject(why);
        if (open) this.#comeBack(why);
      };
      socket.onmessage = (event) => {
        const said = JSON.parse(String(event.data)) as Incoming | Incoming[];
        for (const message of Array.isArray(said) ? said : [said]) this.#take(message);
        if (greeted) return;
        greeted = true;
        this.#introduce().then(
          () => {
            open = true;
            resolve();
          },
          (why: unknown) => {
            reject(why);
            this.#lost();
            socket.close(1000);
          },
        );
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
    for (const [key, { session_id, thread_id, cursor }] of [...this.#followed]) {
      try {
        await this.call("thread.subscribe", { session_id, thread_id, after: cursor });
      } catch (why) {
        if (!(why instanceof RpcError) || !GONE.has(why.type)) throw why;
        this.#followed.delete(key);
        this.#options.dropped?.({ session_id, thread_id }, why);
      }
    }
  }

  #lost(): void {
    for (const { method, reject } of this.#waiting.values()) reject(new OutcomeUnknown(method));
    this.#waiting.clear();
  }

  #comeBack(why: Error): void {
    const first = this.#options.retryMs ?? 250;
    if (this.#closed) return;
    if (first === 0 || isFinal(why)) {
      this.#options.ended?.(why);
      return;
    }
    const attempt = (pause: number): void => {
      // Not all at once: those who lost the same server come back spread out.
      const wait = pause * (0.5 + Math.random() / 2);
      setTimeout(() => {
        if (this.#closed) return;
        this.#open().catch(async (failed: Error) => {
          const refused = (await this.#tokenRefused()) ? new HungUp("the token is not accepted any more", 4501) : failed;
          if (isFinal(refused)) this.#options.ended?.(refused);
          else attempt(Math.min(pause * 2, LONGEST_PAUSE_MS));
        });
      }, wait);
    };
    attempt(first);
  }

  /** Whether the server is there and refuses the token: a WebSocket is told of no HTTP status. False also where that
   * cannot be seen, as in a page of another origin. */
  async #tokenRefused(): Promise<boolean> {
    const address = this.#url.replace(/^ws/, "http").replace(/\/ws$/, "/rpc");
    const headers = { Authorization: `Bearer ${this.#options.token}` };
    try {
      return (await fetch(address, { method: "POST", headers, body: "{}" })).status === 401;
    } catch {
      return false;
    }
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
    if (event.type === "request.cancel") this.#answers.delete(event.payload.id);
    const followed = this.#followed.get(`${event.session_id} ${event.thread_id}`);
    if (followed !== undefined && event.cursor != null) followed.cursor = event.cursor;
    for (const listener of this.#listeners.get(event.type) ?? []) listener(event);
  }

  async #asked(message: Incoming): Promise<void> {
    const id = String(message.id);
    const answerers = this.#options.questions as Record<string, Answerer<QuestionKind> | undefined> | undefined;
    const answerer = answerers?.[String(message.method)];
    if (answerer === undefined) {
      this.#say({ id, error: { code: -32601, message: `${message.method} is not answered here.` } });
      return;
    }
    // Whoever comes back is asked again what is open; a person is not. The answer goes where it was asked for last: before
    // that the server does not expect it there.
    const socket = this.#socket;
    const answer = this.#answers.get(id) ?? answered(answerer, message.params as never, id);
    this.#answers.set(id, answer);
    const said = await answer;
    if (this.#socket !== socket || this.#answers.get(id) !== answer) return;
    if (this.#say({ id, ...said })) this.#answers.delete(id);
  }

  #say(message: object): boolean {
    const socket = this.#socket;
    if (socket === undefined || socket.readyState !== WebSocket.OPEN) return false;
    socket.send(JSON.stringify({ jsonrpc: "2.0", ...message }));
    return true;
  }
}

async function answered(answerer: Answerer<QuestionKind>, params: never, id: string): Promise<object> {
  try {
    return { result: await answerer(params, id) };
  } catch (why) {
    return { error: { code: -32603, message: String(why) } };
  }
}
