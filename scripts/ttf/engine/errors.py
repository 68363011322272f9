"""The error with a message for the user."""


class StudyError(Exception):
    """A problem of the input or the configuration that the user can correct.

    The message names the file, line or key, what was expected there, and what to do. It is shown without a traceback.
    """
