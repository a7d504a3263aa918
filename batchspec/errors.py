"""The exceptions that batchspec raises; every message is one sentence a user can act on.

BatchspecError
├── UsageError        the invocation is wrong; nothing was written          exit status 2
│   ├── ModelError    the model cannot be loaded or is not supported        exit status 2
│   └── DamagedInputError   the input broke off while it was read           exit status 2
└── RequestError      one line of the input is wrong; its record says so    exit status 1

KeyboardInterrupt
└── Terminated        the process received SIGTERM                          exit status 143
"""

__all__ = ["BatchspecError", "DamagedInputError", "ModelError", "RequestError", "Terminated", "UsageError"]


class BatchspecError(Exception):
    """Root of the tree: catch this to catch everything that batchspec raises on purpose."""


class UsageError(BatchspecError):
    """A flag, a path or a configuration is wrong, so that the run cannot start."""


class ModelError(UsageError):
    """A model directory cannot be read, or its family cannot run on paged attention."""


class DamagedInputError(UsageError):
    """The input is truncated or corrupt; raised where that shows, with the rows before it already read."""


class Terminated(KeyboardInterrupt):
    """The process received SIGTERM, which ends it as SIGINT does, with a status of its own."""


class RequestError(BatchspecError):
    """A single request cannot be served; it becomes that line's error record and the run goes on.

    Args:
        message: what is wrong and what would be right, without the line number.
        param: the field of the body that is at fault, or None when it is the line as a whole.
        code: a short machine-readable name, such as ``invalid_value`` or ``unsupported_parameter``.
        status_code: the HTTP status a server would have answered, 4xx for the user's mistakes, 5xx for ours.
    """

    def __init__(self, message: str, *, param: str | None = None, code: str = "invalid_value", status_code: int = 400):
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
        self.status_code = status_code
