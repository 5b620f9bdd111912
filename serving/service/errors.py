"""What the service refuses, as errors that every door can word: a code, a message, the field, what to do."""

from __future__ import annotations

from data.errors import ToolcribError


class ServiceError(ToolcribError):
    """A request that cannot be served. `code` is stable and meant for programs; `path` names the field at fault."""

    code = "refused"

    def __init__(self, message: str, *, path: str = "", hint: str = "") -> None:
        self.message, self.path, self.hint = message, path, hint
        super().__init__(f"{message} ({hint})" if hint else message)


class UnknownSliceError(ServiceError):
    """No such slice for this caller: never made, expired, or somebody else's, which must look the same."""

    code = "unknown_slice"


class NotShownError(ServiceError):
    """The tool is not among those that the slice shows to this caller now."""

    code = "not_shown"


class UnknownHandleError(ServiceError):
    """No such observation for this caller: never stored, expired, or somebody else's."""

    code = "unknown_handle"


class UnknownTicketError(ServiceError):
    """No such ticket for this caller, or one that was decided, used or has expired."""

    code = "unknown_ticket"


class NotPermittedError(ServiceError):
    """The credential does not carry the right to do this."""

    code = "not_permitted"


class RequestError(ServiceError):
    """The request is well formed and cannot be meant."""

    code = "invalid_request"


class NoRerankerError(ServiceError):
    """The served bundle has no cross-encoder."""

    code = "no_reranker"


class ModelFailedError(ServiceError):
    """A model gave something that cannot be used, where nothing can stand in for it."""

    code = "model_failed"


class StoreUnavailableError(ServiceError):
    """What has to be read or kept before answering is out of reach for the moment."""

    code = "store_unavailable"
