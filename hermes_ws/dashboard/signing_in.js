// Who this browser is: a ticket in the fragment of a link is exchanged, once, for a token that stays in this origin.

const KEY = "hermes-ws.token";

/** @returns {string | null} */
export function storedToken() {
  return localStorage.getItem(KEY);
}

export function forget() {
  localStorage.removeItem(KEY);
}

/**
 * Exchange the ticket of the address for a token, and take it out of the address and the history.
 * @returns {Promise<"none" | "signed in" | "refused">}
 */
export async function useTicket() {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  if (ticket === null) return "none";
  history.replaceState(null, "", location.pathname);
  const answer = await fetch("/login", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ticket }),
  });
  if (!answer.ok) return "refused";
  localStorage.setItem(KEY, (await answer.json()).token);
  return "signed in";
}
