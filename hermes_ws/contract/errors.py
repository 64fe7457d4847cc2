"""Every error that the product can answer with: one tree, one stable type each.

`code` groups errors for programs that only know numbers, `type` is the name that stays, `message` is a sentence for
the person, `hint` says what to do. `to_wire` is the one place where an exception becomes a wire error; whatever is not
in the tree is a bug of ours and leaves as `internal` with an incident id and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, final

from pydantic import JsonValue


class HermesError(Exception):
    """An answer that was foreseen. Subclasses fix `code`, `type` and usually `hint`; `data` is what a program needs."""

    code: ClassVar[int] = -32603
    type: ClassVar[str] = "internal"
    hint: str = ""

    def __init__(self, message: str, *, hint: str = "", **data: JsonValue) -> None:
        super().__init__(message)
        self.message = message
        self.data: Mapping[str, JsonValue] = data
        if hint:
            self.hint = hint

    def to_wire(self) -> dict[str, JsonValue]:
        """`{code, message, data: {type, hint?, ...}}`, as every transport sends it."""
        data: dict[str, JsonValue] = {"type": self.type}
        if self.hint:
            data["hint"] = self.hint
        data.update(self.data)
        return {"code": self.code, "message": self.message, "data": data}


# --- JSON-RPC 2.0, section 5.1 -------------------------------------------------------------------------------------


@final
class ParseError(HermesError):
    """The frame is not JSON."""

    code = -32700
    type = "parse_error"
    hint = "Send one JSON object per message, in UTF-8."


@final
class InvalidRequest(HermesError):
    """The frame is JSON but no JSON-RPC 2.0 request; batches are refused here as well."""

    code = -32600
    type = "invalid_request"
    hint = 'Send {"jsonrpc": "2.0", "id": …, "method": …, "params": {…}}, one per message.'


@final
class MethodUnknown(HermesError):
    """No such method."""

    code = -32601
    type = "method_unknown"
    hint = "rpc.discover lists the methods of this server."


@final
class NeedsConnection(HermesError):
    """The method changes its connection, and a single HTTP request has none."""

    code = -32601
    type = "needs_connection"
    hint = "Use a WebSocket for this method."


@final
class ParamsNotObject(HermesError):
    """`params` is neither absent nor an object."""

    code = -32602
    type = "params_not_object"
    hint = "Parameters are passed by name, as a JSON object."


@final
class RequestCancelled(HermesError):
    """The caller took the request back with `$/cancel` before it had happened."""

    code = -32800
    type = "request_cancelled"


@final
class Internal(HermesError):
    """A bug of ours. The incident id finds the stack in the log; nothing else leaves the server."""

    code = -32603
    type = "internal"
    hint = "Look for the incident id in the profile's log; for what belongs to no profile, in the server's."


# --- 4000: what was asked is malformed -----------------------------------------------------------------------------


class InvalidParams(HermesError):
    """A parameter is missing, has the wrong shape, or is blank. `path` names it."""

    code = 4000
    type = "invalid_params"


@final
class UnknownParameter(InvalidParams):
    """A key that the method does not declare. `path` names it."""

    type = "unknown_parameter"


# --- 4001, 4004: what was asked for is not there (or may not be seen) ----------------------------------------------


@final
class SessionUnknown(HermesError):
    """No such session, or none that the caller may see."""

    code = 4001
    type = "session_unknown"
    hint = "session.list shows the sessions there are."


@final
class ThreadUnknown(HermesError):
    """No such thread in the session."""

    code = 4001
    type = "thread_unknown"


@final
class NotAttached(HermesError):
    """Who wants to control something of a session has to listen to it."""

    code = 4001
    type = "not_attached"
    hint = "Subscribe to a thread of the session on this connection first (session.resume or thread.subscribe)."


@final
class NotFound(HermesError):
    """The thing named in the request does not exist, or may not be seen."""

    code = 4004
    type = "not_found"


# --- 4003: not allowed ---------------------------------------------------------------------------------------------


class PermissionDenied(HermesError):
    """The principal lacks the right."""

    code = 4003
    type = "permission_denied"


@final
class DirectoryRefused(PermissionDenied):
    """The directory would open a profile home, or lies outside of what the policy grants."""

    type = "directory_refused"
    hint = "Choose a directory below one of terminal.directories, or add one in config.yaml."


# --- 4009, 4010: the state does not allow it -----------------------------------------------------------------------


@final
class SessionBusy(HermesError):
    """An execution is active or queued, and the caller asked to be refused then."""

    code = 4009
    type = "session_busy"


@final
class AdmissionConflict(HermesError):
    """The `input_id` or `request_id` was used before, with other content."""

    code = 4009
    type = "admission_conflict"
    hint = "Use a new id for new content; repeat the same content to get the stored receipt."


@final
class AlreadyExists(HermesError):
    """The name is taken."""

    code = 4009
    type = "already_exists"


@final
class StaleEpoch(HermesError):
    """Another process owns the home now; this one may no longer write to it."""

    code = 4010
    type = "stale_epoch"


@final
class StaleGeneration(HermesError):
    """The execution that the caller means is not the current one. `active` tells which is."""

    code = 4010
    type = "stale_generation"


@final
class RevisionConflict(HermesError):
    """The session was edited since the caller looked. `revision` is the one that it has now."""

    code = 4010
    type = "revision_conflict"
    hint = "Look at the session again, and repeat the edit with its revision and a new request_id."


@final
class AlreadyNegotiated(HermesError):
    """client.capabilities is said once per connection."""

    code = 4010
    type = "already_negotiated"
    hint = "Open a new connection to negotiate anew."


# --- 4022: a person has to say yes ----------------------------------------------------------------------------------


@final
class ConsentRequired(HermesError):
    """The request takes something away that cannot be brought back. `consent` is the token to repeat it with."""

    code = 4022
    type = "consent_required"
    hint = "Ask the person, and repeat the request with `consent` set to the token."


# --- 4029, 5035: not now -------------------------------------------------------------------------------------------


@final
class Overloaded(HermesError):
    """More requests are waiting on this connection than it may have. `retry_after_s` says when to come back."""

    code = 4029
    type = "overloaded"


@final
class LimitReached(HermesError):
    """A configured limit is reached. `retry_after_s` says when to come back."""

    code = 4029
    type = "limit_reached"


@final
class Draining(HermesError):
    """The server is shutting down and takes no new work."""

    code = 5035
    type = "draining"
    hint = "Reconnect when the server is back; what was accepted is kept."


# --- 4064: profiles ------------------------------------------------------------------------------------------------


class ProfileUnknown(HermesError):
    """No such profile is served, or the caller may not address it. There is never a fall-back."""

    code = 4064
    type = "profile_unknown"
    hint = "profiles.list shows the profiles that are served."


@final
class ProfileMismatch(HermesError):
    """The request names one profile and a session of another."""

    code = 4064
    type = "profile_mismatch"


@final
class ProfileUnusable(HermesError):
    """The home cannot be opened as it is: configuration, permissions, owner. The message says what to mend."""

    code = 4064
    type = "profile_unusable"


# --- 4090, 4413, 4426 ----------------------------------------------------------------------------------------------


@final
class UnknownExecution(HermesError):
    """An execution was lost and nobody has said what should become of it."""

    code = 4090
    type = "unknown_execution"
    hint = "Resolve the lost execution first; nothing is repeated on a guess."


@final
class TooLarge(HermesError):
    """The content is larger than this server keeps. `limit` says how large it may be."""

    code = 4413
    type = "too_large"


@final
class ProtocolUnsupported(HermesError):
    """The client speaks another major version of the protocol. `supported` tells which there is."""

    code = 4426
    type = "protocol_unsupported"


# --- 5001, 5002, 5003: what we stand on failed ---------------------------------------------------------------------


class StorageUnavailable(HermesError):
    """The database of the profile cannot be written or read. Other profiles go on."""

    code = 5001
    type = "storage_unavailable"


@final
class StorageFull(StorageUnavailable):
    """The disk or the quota is full."""

    type = "storage_full"
    hint = "Free some space; the profile takes writes again by itself."


class ModelFailed(HermesError):
    """The model's endpoint failed or broke off."""

    code = 5002
    type = "model_failed"


@final
class ModelUnauthorised(ModelFailed):
    """The endpoint refused the key, or there is none."""

    type = "model_unauthorised"
    hint = "Put the provider's key into the profile's .env, under the name that config.yaml refers to."


@final
class ModelRateLimited(ModelFailed):
    """The endpoint asked to slow down, and went on asking."""

    type = "model_rate_limited"


@final
class LaunchCredentialsUnavailable(ModelFailed):
    """The session was started with a key that lived in memory only, and the server restarted since."""

    type = "launch_credentials_unavailable"
    hint = "Start a new session with the key."


class ConfinementUnavailable(HermesError):
    """`terminal.confine: required`, and this kernel cannot."""

    code = 5003
    type = "confinement_unavailable"


@final
class WardenFailed(HermesError):
    """The confined child of the profile could not start, or died."""

    code = 5003
    type = "warden_failed"


@final
class FileFailed(HermesError):
    """The machine failed while a file was read or written, or took longer than it may."""

    code = 5003
    type = "file_failed"
