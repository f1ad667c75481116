"""Asks the page of `verde provide` as a browser would, and as others would.

    page_client.py PORT JOB CLIENT METRICS

METRICS: the daemon's answer at /v1/metrics.
"""
import re
import socket
import sys
import xml.dom.minidom
from html.parser import HTMLParser

PORT, JOB, CLIENT = int(sys.argv[1]), sys.argv[2], sys.argv[3]
DISK_SIZE = int(re.search(r"^verde_disk_size_bytes (\d+)$", sys.argv[4], re.M)[1])
assert DISK_SIZE >= 10**9
HERE = "localhost:%d" % PORT


def raw(data, more=b""):
    with socket.create_connection(("127.0.0.1", PORT), timeout=600) as s:
        s.sendall(data)
        answer = b""
        while part := s.recv(1 << 16):
            answer += part
    return answer


def ask(path, host=HERE, method="GET", headers=""):
    host = "" if host is None else "Host: %s\r\n" % host
    head, _, body = raw(("%s %s HTTP/1.1\r\n%s%s\r\n" % (method, path, host, headers)).encode()).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    return int(lines[0].split()[1]), {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:])}, body.decode()


class Elements(HTMLParser):
    """Elements with their attributes, and the text outside of them."""

    def __init__(self, text):
        super().__init__()
        self.seen, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def who_may_ask():
    for host in [HERE, "127.0.0.1:%d" % PORT, "LOCALHOST", "[::1]:1", "localhost:9"]:
        assert ask("/", host)[0] == 200, host
    for host in [None, "", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "localhost:80x", "evil.example:%d" % PORT,
                 "localhost, evil.example", "0.0.0.0", "localhost@evil.example"]:
        assert ask("/", host)[0] == 403, host
    assert ask("/", HERE, headers="Host: evil.example\r\n")[0] == 403
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get"]:
        status, headers, _ = ask("/", method=method)
        assert status == 405 and headers["allow"] == "GET, HEAD", method
    status, headers, body = ask("/", method="HEAD")
    assert status == 200 and int(headers["content-length"]) > 1000 and body == ""


def what_is_no_request():
    for bad, status in [(b"GET http://evil/ HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"), (b"GET /\r\n\r\n", b"400"), (b"\x16\x03\x01\x00\r\n\r\n", b"400"),
                        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: \x01\r\n\r\n", b"400"), (b"GET /" + b"a" * 9000, b"431"),
                        (b"GET / SPDY/3\r\nHost: localhost\r\n\r\n", b"400"), (b"\r\n\r\n", b"400")]:
        answer = raw(bad)
        assert answer.startswith(b"HTTP/1.1 " + status), (bad, answer[:80])
    # Idle connections do not keep others out.
    idle = [socket.create_connection(("127.0.0.1", PORT)) for _ in range(40)]
    assert ask("/")[0] == 200
    for s in idle:
        s.close()


def what_is_there():
    status, headers, body = ask("/")
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'; img-src 'self';") and "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    page = Elements(body)
    assert {tag for tag, _ in page.seen}.isdisjoint({"img", "script", "iframe", "form", "style"})
    assert all(not k.startswith("on") and k != "style" for _, attrs in page.seen for k in attrs)
    assert all(not re.match("https?:|//", value or "") for _, attrs in page.seen for k, value in attrs.items() if k in ("href", "src"))
    name = "<img src=x onerror=alert(1)> & \"a\" 'b' \u00fc.yaml"
    for words in [name, "done", "step 12 of 12", "of 50.0 MB", "of 8", "of %.1f " % (DISK_SIZE / (1e9 if DISK_SIZE < 1e12 else 1e12)), JOB[:8], CLIENT[:8]]:
        assert words in page.text, words
    assert ("a", {"href": "/jobs/" + JOB}) in page.seen
    # A narrow window shows no table heads: each cell has its column's name.
    heads = re.findall(r"<th[^>]*>([^<]+)", body)
    cells = [attrs.get("data-name") for tag, attrs in page.seen if tag == "td"]
    assert heads and cells == heads, (heads, cells)
    assert len([1 for tag, _ in page.seen if tag == "progress"]) >= 3
    status, headers, body = ask("/jobs/" + JOB)
    job = Elements(body)
    assert status == 200 and name in job.text and "run root" in job.text and CLIENT in job.text
    assert [attrs["src"] for tag, attrs in job.seen if tag == "img"] == ["/jobs/%s/losses.svg" % JOB]
    assert ("a", {"href": "/jobs/%s/run.html" % JOB}) in job.seen
    status, headers, body = ask("/jobs/%s/run.html" % JOB)
    assert status == 200 and "A finished run" in body and "data:image/svg+xml" in body
    assert "img-src data:" in headers["content-security-policy"] and "script" not in headers["content-security-policy"]
    status, headers, body = ask("/jobs/%s/losses.svg" % JOB)
    assert status == 200 and headers["content-type"] == "image/svg+xml"
    curve = [p for p in xml.dom.minidom.parseString(body).getElementsByTagName("path") if p.getAttribute("class") == "loss"]
    assert curve[0].getAttribute("d").count("L") == 11
    assert ask("/style.css")[1]["content-type"].startswith("text/css") and ask("/icon.svg")[0] == 200
    other = ("0" if JOB[0] != "0" else "1") + JOB[1:]
    for path in ["/jobs/" + other, "/jobs/" + JOB + "/log", "/jobs/" + JOB + "x", "/jobs/../ledger.db", "/jobs/", "/v1/jobs", "/%2e%2e/", "//",
                 "/keys/key.pem", "/jobs/" + "a" * 3000]:
        assert ask(path)[0] == 404, path


who_may_ask()
what_is_no_request()
what_is_there()
