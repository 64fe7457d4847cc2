// Contents that do not fit into a frame: put and fetched in pieces.

/** Bytes of one piece, as the server takes them. */
const PIECE = 512 * 1024;

/** Bytes of a picture that is shown: what the server lets a message carry. */
const SHOWN = 32 * 1024 * 1024;

/**
 * @param {import("./gateway.js").Gateway} gateway
 * @param {string} profile
 * @param {Blob} content
 * @param {(done: number) => void} [told] between 0 and 1
 * @returns {Promise<string>} its name
 */
export async function put(gateway, profile, content, told = () => undefined) {
  const upload = crypto.randomUUID();
  let offset = 0;
  for (;;) {
    const data = await base64(content.slice(offset, offset + PIECE));
    const answer = await gateway.call("blob.put", { profile, upload, offset, size: content.size, data });
    if (answer.blob) return answer.blob;
    offset = answer.received;
    told(offset / Math.max(content.size, 1));
  }
}

/**
 * @param {import("./gateway.js").Gateway} gateway
 * @param {string} profile
 * @param {string} blob
 * @param {string} type
 * @returns {Promise<Blob>}
 */
export async function get(gateway, profile, blob, type) {
  const pieces = [];
  /** @type {number | null} */
  let offset = 0;
  while (offset !== null && offset < SHOWN) {
    /** @type {import("../../clients/typescript/src/contract.ts").Piece} */
    const piece = await gateway.call("blob.get", { profile, blob, offset });
    pieces.push(Uint8Array.from(atob(piece.data), (character) => character.charCodeAt(0)));
    offset = piece.next ?? null;
  }
  return new Blob(pieces, { type });
}

/** @param {Blob} bytes @returns {Promise<string>} */
function base64(bytes) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("error", () => reject(reader.error));
    reader.addEventListener("load", () => resolve(String(reader.result).split(",", 2)[1] ?? ""));
    reader.readAsDataURL(bytes);
  });
}
