#!/usr/bin/env python3
"""Passes bytes on to a server, and cuts connections in the middle of answers.

Usage: dropping_proxy.py PORT EVERY [SECONDS]
Each EVERY-th answer loses its end, and each piece of an answer waits SECONDS. Prints its own port and, when it is ended, the
number of connections cut."""

import signal
import socket
import sys
import threading
import time

cut = 0
answers = 0
lock = threading.Lock()


def drops(every):
    global answers, cut
    with lock:
        answers += 1
        if answers % every:
            return False
        cut += 1
        return True


def close(*sockets):
    for s in sockets:
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def upward(client, server):
    try:
        while data := client.recv(1 << 16):
            server.sendall(data)
    except OSError:
        pass
    close(client, server)


def downward(server, client, every, seconds):
    """Passes the handshake; later any piece of an answer may be the last."""
    pieces = 0
    try:
        while data := server.recv(1 << 16):
            pieces += 1
            time.sleep(seconds)
            if pieces > 3 and drops(every):
                client.sendall(data[: len(data) // 2])
                break
            client.sendall(data)
    except OSError:
        pass
    close(client, server)


def main(port, every, seconds="0"):
    listener = socket.create_server(("127.0.0.1", 0))
    signal.signal(signal.SIGTERM, lambda *_: (print(cut, flush=True), sys.exit(0)))
    print(listener.getsockname()[1], flush=True)
    while True:
        client, _ = listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", int(port)))
        except OSError:  # it is starting
            client.close()
            continue
        threading.Thread(target=upward, args=(client, server), daemon=True).start()
        threading.Thread(target=downward, args=(server, client, int(every), float(seconds)), daemon=True).start()


main(*sys.argv[1:])
