/** Ask an agent one thing, allow what it wants to do, and print what it answers: node example/ask.ts URL TOKEN TEXT */

import { Gateway } from "../src/gateway.ts";

declare const process: { argv: string[]; exitCode: number };

const [, , url = "", token = "", text = ""] = process.argv;
const gateway = await Gateway.connect(url, {
  token,
  name: "ask.ts",
  questions: {
    approval: (asked) => {
      console.log(`allowed: ${asked.command ?? asked.tool}`);
      return { choice: "once" };
    },
  },
});
const { session_id } = await gateway.call("session.create", { subscribe: false });
await gateway.follow({ session_id });
const finished = new Promise<void>((resolve) => {
  gateway.on("message.complete", (event) => {
    if (event.payload.role === "assistant") console.log(event.payload.text);
  });
  gateway.on("execution.finished", (event) => {
    console.log(`outcome: ${event.payload.outcome}`);
    process.exitCode = event.payload.outcome === "completed" ? 0 : 1;
    resolve();
  });
});
await gateway.call("prompt.submit", { session_id, input_id: crypto.randomUUID(), text });
await finished;
gateway.close();
