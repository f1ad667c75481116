"""Holds COUNT connections to PORT of this machine: TLS, headers, then a byte of body per second; replaces those that are cut.

Prints a line when all have been opened; runs until it is killed.
"""
import errno
import socket
import ssl
import sys
import time

port, count = int(sys.argv[1]), int(sys.argv[2])
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
HEAD = b"POST /v1/ask HTTP/1.1\r\nContent-Length: 100000\r\n\r\n"


class Slow:
    def __init__(self):
        self.raw = socket.socket()
        self.raw.setblocking(False)
        self.tls = None
        self.shaken = False
        self.next = 0

    def go_on(self):
        if self.tls is None:
            if self.raw.connect_ex(("127.0.0.1", port)) not in (0, errno.EISCONN):
                raise BlockingIOError
            self.tls = context.wrap_socket(self.raw, do_handshake_on_connect=False)
        if not self.shaken:
            self.tls.do_handshake()
            self.shaken = True
            self.tls.send(HEAD)
        else:
            self.tls.send(b"x")

    def step(self):
        try:
            self.go_on()
            self.next = time.monotonic() + 1
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
            self.next = time.monotonic() + 0.01
        except OSError:
            (self.tls or self.raw).close()
            return False
        return True


connections = [None] * count
announced = False
while True:
    for i, slow in enumerate(connections):
        if slow is None:
            connections[i] = Slow()
        elif time.monotonic() >= slow.next and not slow.step():
            connections[i] = None
    if not announced:
        print("dialled", flush=True)
        announced = True
    time.sleep(0.005)
