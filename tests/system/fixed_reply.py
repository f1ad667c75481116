#!/usr/bin/env python3
"""A provider with the right key that gives the same reply to everything.

Usage: fixed_reply.py KEYS STATUS BODY
Prints its URL."""

import http.server
import ssl
import sys

keys, status, body = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(keys + "/tls.crt", keys + "/key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(f"https://127.0.0.1:{server.server_address[1]}#{open(keys + '/key.pub').read().strip()}", flush=True)
server.serve_forever()
