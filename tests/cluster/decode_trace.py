"""Decodes one OTLP request strictly: prints the spans as JSON, and fails on fields unknown to the protocol."""

import json
import sys

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


def refuse_unknown(message):
    if len(UnknownFieldSet(message)):
        sys.exit(f"{message.DESCRIPTOR.full_name} has fields that nobody knows")
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for each in [value] if hasattr(value, "ListFields") else value:
                refuse_unknown(each)


def plain(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(each) for each in value.array_value.values]
    return getattr(value, kind)


def table(attributes):
    keys = [each.key for each in attributes]
    if len(set(keys)) != len(keys):
        sys.exit(f"a key stands twice: {keys}")
    return {each.key: plain(each.value) for each in attributes}


def main():
    request = ExportTraceServiceRequest()
    with open(sys.argv[1], "rb") as file:
        request.ParseFromString(file.read())
    refuse_unknown(request)
    spans = []
    for group in request.resource_spans:
        for scope in group.scope_spans:
            for span in scope.spans:
                spans.append(
                    {
                        "resource": table(group.resource.attributes),
                        "scope": scope.scope.name,
                        "trace": span.trace_id.hex(),
                        "id": span.span_id.hex(),
                        "parent": span.parent_span_id.hex(),
                        "name": span.name,
                        "kind": Span.SpanKind.Name(span.kind),
                        "start": span.start_time_unix_nano,
                        "end": span.end_time_unix_nano,
                        "attributes": table(span.attributes),
                        "events": [
                            {"name": each.name, "at": each.time_unix_nano, "attributes": table(each.attributes)}
                            for each in span.events
                        ],
                        "status": Status.StatusCode.Name(span.status.code),
                        "message": span.status.message,
                    }
                )
    json.dump(spans, sys.stdout)


main()
