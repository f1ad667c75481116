"""A provider that accepts a job and never does it, written from PROTOCOL.md sections 8.5 and 8.7 alone.

Usage: stalling_provider.py KEYS HOW, where HOW is the state that it always reports (`running`, `queued`, or an unknown one),
`huge` (running, and the job has 2^53 steps), or `silent`: it accepts requests and answers none. Prints its URL. KEYS is a
folder of `verde keygen`.
"""
import base64
import hashlib
import http.server
import json
import ssl
import sys
import threading

keys, how = sys.argv[1:3]


class Provider(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body):
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if how == "silent":
            threading.Event().wait()
        if self.path.startswith("/v1/blobs/"):
            self.answer({"complete": True, "have": 0, "size": 0})
        elif self.command == "POST":
            client = json.loads(base64.b64decode(self.headers["Verde-Request"]))["signatures"][0]["keyid"]
            self.answer({"job": hashlib.sha256(b"verde/job/1\0" + bytes.fromhex(client) + body).hexdigest()})
        else:
            steps = 2**53 if how == "huge" else 12
            self.answer({"state": "running" if how == "huge" else how, "step": 1, "steps": steps, "rate": 1e-300, "seconds_left": 1e300})

    do_GET = do_POST = do_PUT = serve


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # the client closes the connection midway


server = Server(("127.0.0.1", 0), Provider)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(keys + "/tls.crt", keys + "/key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
with open(keys + "/key.pub") as file:
    print(f"https://127.0.0.1:{server.server_address[1]}#{file.read().strip()}", flush=True)
server.serve_forever()
