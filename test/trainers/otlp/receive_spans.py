"""Receives spans over OTLP/HTTP as the protocol defines them, and prints each as a line of JSON; the first line is its port."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        if self.path != "/v1/traces" or self.headers["content-type"] != "application/x-protobuf":
            self.send_error(404)
            return
        request = ExportTraceServiceRequest.FromString(self.read_chunks())
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    attributes = {each.key: next(iter(MessageToDict(each.value).values()), None) for each in span.attributes}
                    fields = {"name": span.name, "scope": scope.scope.name, "attributes": attributes, "status": span.status.code}
                    times = {"start": span.start_time_unix_nano, "end": span.end_time_unix_nano}
                    ids = {"trace": span.trace_id.hex(), "id": span.span_id.hex(), "parent": span.parent_span_id.hex()}
                    print(json.dumps({**fields, **times, **ids}), flush=True)
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def read_chunks(self):
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_port, flush=True)
server.serve_forever()
