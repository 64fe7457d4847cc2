// Edits of a session: fenced by the revision that the person has seen, carried out once, with consent where it costs.

import { Refusal, Unknown } from "./gateway.js";

/** @typedef {import("../../clients/typescript/src/contract.ts").MutateParams} Mutation */

/**
 * @param {import("./gateway.js").Gateway} gateway
 * @param {{session_id: string, revision: number, generation?: number}} session
 * @param {Mutation["operation"]} operation
 * @param {Mutation["payload"]} payload
 * @param {(message: string) => boolean} [agrees] asked when the server wants consent
 * @returns {Promise<any>} what the operation gives; null when the person did not agree
 */
export async function mutate(gateway, session, operation, payload, agrees = () => true) {
  const params = {
    session_id: session.session_id,
    request_id: crypto.randomUUID(),
    expected_revision: session.revision,
    operation,
    payload,
    ...(session.generation === undefined ? {} : { expected_generation: session.generation }),
  };
  try {
    return await gateway.call("session.mutate", params);
  } catch (error) {
    if (error instanceof Unknown) {
      // The reply was lost, not the request: the same one again is answered with what became of it.
      return gateway.call("session.mutate", params);
    }
    if (!(error instanceof Refusal) || error.type !== "consent_required") throw error;
    if (!agrees(error.message)) return null;
    return gateway.call("session.mutate", { ...params, request_id: crypto.randomUUID(), consent: error.data.consent });
  }
}
