"""Holds COUNT bad connections to PORT of this machine, from eight addresses, and replaces those that end.

They are slow, cut, garbage, oversized, or show a certificate of the key in KEYS, which nobody has enrolled. Prints a line when all
have been opened, and one with what became of them when it is told to end.
Usage: bad_connections.py PORT COUNT KEYS
"""
import errno
import signal
import socket
import ssl
import sys
import time

port, count, keys = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
BIG = b"POST /v1/ask HTTP/1.1\r\nContent-Length: 15000000\r\n\r\n" + b"x" * 65536


def plain_context():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


stranger = plain_context()
stranger.load_cert_chain(keys + "/tls.crt", keys + "/key.pem")
plain = plain_context()


class Bad:
    """One connection; step() is called repeatedly, and raises OSError when the connection has ended."""

    context = plain
    pause = 1.0

    def __init__(self, number):
        self.raw = socket.socket()
        self.raw.setblocking(False)
        self.raw.bind((f"127.0.0.{2 + number % 8}", 0))
        self.tls = None
        self.shaken = False
        self.next = 0
        self.said = 0

    def shake(self):
        if self.tls is None:
            if self.raw.connect_ex(("127.0.0.1", port)) not in (0, errno.EISCONN):
                raise BlockingIOError
            self.tls = self.context.wrap_socket(self.raw, do_handshake_on_connect=False)
        if not self.shaken:
            self.tls.do_handshake()
            self.shaken = True

    def step(self):
        self.shake()
        self.speak()
        self.said += 1
        self.next = time.monotonic() + self.pause

    def close(self):
        (self.tls or self.raw).close()


class Slow(Bad):
    def speak(self):
        self.tls.send(b"x" if self.said else b"POST /v1/ask HTTP/1.1\r\nContent-Length: 100000\r\n\r\n")


class Cut(Bad):
    pause = 0.1

    def speak(self):
        if self.said == 3:
            raise ConnectionResetError
        self.tls.send(b"POST /v1/ask HT" if self.said == 0 else b"TP/1")


class Garbage(Bad):
    pause = 0.5

    def step(self):
        if self.raw.connect_ex(("127.0.0.1", port)) not in (0, errno.EISCONN):
            raise BlockingIOError
        self.raw.send(bytes((self.said * 31 + i * 7) % 256 for i in range(3000)))
        self.said += 1
        self.next = time.monotonic() + self.pause


class Oversized(Bad):
    pause = 0.2

    def speak(self):
        self.tls.send(BIG if self.said == 0 else b"x" * 65536)


class Stranger(Bad):
    context = stranger

    def speak(self):
        self.tls.send(b"GET /v1/provider HTTP/1.1\r\n\r\n")
        self.tls.recv(65536)


KINDS = [Slow, Cut, Garbage, Oversized, Stranger]
ended = dict.fromkeys(KINDS, 0)
dialled = dict.fromkeys(KINDS, 0)


def tell(*_):
    print(", ".join(f"{kind.__name__}: {dialled[kind]} dialled, {ended[kind]} ended" for kind in KINDS), flush=True)
    sys.exit(0)


signal.signal(signal.SIGTERM, tell)
connections = [None] * count
announced = False
while True:
    for i, bad in enumerate(connections):
        if bad is None:
            connections[i] = KINDS[i % len(KINDS)](i)
            dialled[type(connections[i])] += 1
        elif time.monotonic() >= bad.next:
            try:
                bad.step()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
                bad.next = time.monotonic() + 0.01
            except OSError:
                ended[type(bad)] += 1
                bad.close()
                connections[i] = None
    if not announced:
        print("dialled", flush=True)
        announced = True
    time.sleep(0.005)
