"""Lines of a model in the log of the server."""

from .errors import TritonModelException

# Set by the runner.
connection = None


class Logger:
    """The server's log."""

    INFO, WARNING, ERROR, VERBOSE = "INFO", "WARNING", "ERROR", "VERBOSE"

    class LogLevel:
        INFO, WARNING, ERROR, VERBOSE = "INFO", "WARNING", "ERROR", "VERBOSE"

    @staticmethod
    def log(message, level=LogLevel.INFO):
        if level not in (Logger.INFO, Logger.WARNING, Logger.ERROR, Logger.VERBOSE):
            raise TritonModelException(f"Unable to log: given the level {level!r}, expected one of Logger's")
        connection.send(["log", level, str(message)])

    @staticmethod
    def log_info(message):
        Logger.log(message, Logger.INFO)

    @staticmethod
    def log_warn(message):
        Logger.log(message, Logger.WARNING)

    @staticmethod
    def log_error(message):
        Logger.log(message, Logger.ERROR)

    @staticmethod
    def log_verbose(message):
        Logger.log(message, Logger.VERBOSE)
