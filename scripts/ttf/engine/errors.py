"""The one error that a user is meant to read."""


class StudyError(Exception):
    """Something about the input or the configuration that its owner can put right.

    The message is a whole answer: the file, line or key, what was expected there, and what to do.
    It is shown without a traceback.
    """
