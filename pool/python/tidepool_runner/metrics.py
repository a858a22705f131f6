"""A model's own metrics. The values live in the server, because all instances of a model add to the same ones."""

import itertools

from . import calls
from .errors import TritonModelException

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

numbers = itertools.count(1)


class MetricFamily:
    """Metrics of one name, each with labels of its own."""

    COUNTER, GAUGE, HISTOGRAM = COUNTER, GAUGE, HISTOGRAM

    def __init__(self, name, description, kind):
        if kind not in (COUNTER, GAUGE, HISTOGRAM):
            raise TypeError("MetricFamily: expected kind to be COUNTER, GAUGE or HISTOGRAM")
        self._kind, self._number = kind, next(numbers)
        calls.ask("Error when creating MetricFamily: ", "family", self._number, name, description, kind)

    def Metric(self, labels=None, buckets=None):  # noqa: N802 - the contract's own name
        """The metric with these labels; a histogram needs the upper bounds of its buckets."""
        if labels is not None and not isinstance(labels, dict):
            raise TritonModelException("Failed to create metric. Labels must be a dictionary.")
        if buckets is None:
            if self._kind == HISTOGRAM:
                raise TritonModelException("Failed to create metric. Missing required buckets.")
        elif not isinstance(buckets, list):
            raise TritonModelException("Failed to create metric. Buckets must be a list.")
        elif self._kind != HISTOGRAM:
            raise TritonModelException("Failed to create metric. Unexpected buckets found.")
        return Metric(self, labels or {}, buckets)

    def __del__(self):
        if hasattr(self, "_number"):
            calls.connection.note(["endFamily", self._number])


class Metric:
    """One value, or the counts of one histogram."""

    def __init__(self, family, labels, buckets):
        self._family, self._kind, self._number = family, family._kind, next(numbers)
        texts = {str(name): str(value) for name, value in labels.items()}
        bounds = buckets and [float(bound) for bound in buckets]
        calls.ask("Error when creating Metric: ", "metric", self._number, family._number, texts, bounds)

    def increment(self, value):
        subject = "Failed to increment metric value"
        if self._kind == COUNTER and value < 0:
            self._refuse(subject, "can only be incremented monotonically by non-negative values.")
        if self._kind == HISTOGRAM:
            self._refuse(subject, "does not support Increment")
        self._change("increment", value)

    def set(self, value):
        if self._kind != GAUGE:
            self._refuse("Failed to set metric value", "does not support Set")
        self._change("set", value)

    def observe(self, value):
        if self._kind != HISTOGRAM:
            self._refuse("Failed to observe metric value", "does not support Observe")
        self._change("observe", value)

    def value(self):
        subject = "Failed to get metric value"
        if self._kind == HISTOGRAM:
            self._refuse(subject, "does not support Value")
        return float(calls.ask(f"{subject}: ", "value", self._number))

    def _refuse(self, subject, problem):
        kind = f"TRITONSERVER_METRIC_KIND_{self._kind.upper()}"
        place = f"Failed to process the request for model '{calls.instance}', message"
        raise TritonModelException(f"{subject}: {place}: {kind} {problem}")

    def _change(self, operation, value):
        calls.connection.send(["change", self._number, operation, float(value)])

    def __del__(self):
        if hasattr(self, "_number"):
            calls.connection.note(["endMetric", self._number])
