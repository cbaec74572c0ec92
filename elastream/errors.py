"""Every error a user can meet. Each message says where, what was expected, what came, and the fix."""


class ElastreamError(Exception):
    """The root of all errors that Elastream raises on purpose."""


class TopologyError(ElastreamError):
    """The declared graph is wrong; nothing has run."""


class SettingError(ElastreamError):
    """A setting, an option or an argument is wrong; nothing has run."""


class BaseInUse(ElastreamError):
    """Another driver holds the base directory."""


class BaseUnusable(ElastreamError):
    """The base directory cannot be written, or is not one of ours."""


class Damaged(ElastreamError):
    """A stored file is not what was written. Nothing was applied; mend the file and go on."""


class OperatorFailed(ElastreamError):
    """An operator raised, or returned what it did not declare. Nothing of the tick was applied."""


class RunFailed(ElastreamError):
    """The tick could not be finished. What is committed is safe; the same base goes on."""
