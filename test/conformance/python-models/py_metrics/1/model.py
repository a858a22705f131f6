"""Has metrics of its own, and tells what they say and refuse."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


def attempt(function, *arguments, **options):
    try:
        return function(*arguments, **options)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class TritonPythonModel:
    def initialize(self, args):
        kind = pb_utils.MetricFamily
        kinds = {"COUNTER": kind.COUNTER, "GAUGE": kind.GAUGE, "HISTOGRAM": kind.HISTOGRAM}
        self.families = {name: kind(name=f"py_{name.lower()}", description=f"a {name}", kind=value) for name, value in kinds.items()}
        labels = {"model": args["model_name"], "part": "a"}
        self.counter = self.families["COUNTER"].Metric(labels=labels)
        self.gauge = self.families["GAUGE"].Metric(labels=labels)
        self.histogram = self.families["HISTOGRAM"].Metric(labels=labels, buckets=[0.1, 1.0, 10.0])

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        mode = pb_utils.get_input_tensor_by_name(request, "MODE").as_numpy()[0].decode()
        answer = getattr(self, mode)()
        return pb_utils.InferenceResponse([pb_utils.Tensor("ANSWER", np.array([json.dumps(answer)], dtype=object))])

    def use(self):
        self.counter.increment(2)
        self.counter.increment(0.5)
        self.gauge.set(10)
        self.gauge.increment(-3)
        for value in (0.05, 0.5, 5, 50):
            self.histogram.observe(value)
        return [self.counter.value(), self.gauge.value()]

    def refused(self):
        return [
            attempt(self.families["COUNTER"].Metric, labels=["a"]),
            attempt(self.families["COUNTER"].Metric, labels={}, buckets=[1.0]),
            attempt(self.families["HISTOGRAM"].Metric, labels={}),
            attempt(self.families["HISTOGRAM"].Metric, labels={}, buckets=(1.0,)),
        ]

    def again(self):
        family = pb_utils.MetricFamily(name="py_counter", description="a COUNTER", kind=pb_utils.MetricFamily.COUNTER)
        same = family.Metric(labels={"model": "py_metrics", "part": "a"})
        before = self.counter.value()
        same.increment(1)
        return [self.counter.value() - before, same.value() - before]

    def passing(self):
        family = pb_utils.MetricFamily(name="py_passing", description="soon gone", kind=pb_utils.MetricFamily.GAUGE)
        family.Metric(labels={}).set(1)
        return None
