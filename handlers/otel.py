"""Spans by OpenTelemetry, sent over OTLP and HTTP. Imported only where traces are switched on."""

from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from storage.figures import word

TRACES = "/v1/traces"       # below the address of a receiver: OTLP's own path
W3C = TraceContextTextMapPropagator()


class Tracer:
    """What storage.tracing speaks to. The SDK reads OpenTelemetry's own variables for headers, sampling and the like."""

    def __init__(self, url: str, process: str):
        provider = TracerProvider(resource=_resource(process))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=url.removesuffix(TRACES) + TRACES)))
        self._tracer = provider.get_tracer("posthorn")

    @contextmanager
    def span(self, name, attributes, *, parent, server):
        """As storage.tracing.span."""
        above = W3C.extract({"traceparent": parent}) if parent else None
        with self._tracer.start_as_current_span(name, context=above, kind=SpanKind.SERVER if server else SpanKind.INTERNAL,
                                                attributes=attributes, record_exception=False,
                                                set_status_on_exception=False) as span:
            try:
                yield
            except Exception as error:      # its words may hold what is nobody's business
                span.set_attribute("error.type", word(error))
                span.set_status(Status(StatusCode.ERROR))
                raise

    def note(self, attributes, name):
        """As storage.tracing.note."""
        span = trace.get_current_span()
        span.set_attributes(attributes)
        if name is not None:
            span.update_name(name)

    def traceparent(self):
        """As storage.tracing.traceparent."""
        carrier = {}
        W3C.inject(carrier)
        return carrier.get("traceparent")


def _resource(process):
    """What OpenTelemetry's variables say of us, and a name of our own where they give none."""
    told = Resource.create()
    named = not str(told.attributes["service.name"]).startswith("unknown_service")
    return told if named else told.merge(Resource({"service.name": f"posthorn-{process}"}))
