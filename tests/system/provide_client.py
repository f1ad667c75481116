"""A client of `verde provide` written from PROTOCOL.md sections 8.5 to 8.7 alone; openssl makes its signatures.

    provide_client.py URL KEYS request METHOD PATH [--body FILE] [--skew SECONDS] [--nonce HEX] [--unsigned] [--signed-for KEY]
    provide_client.py URL KEYS upload FILE [--chunk BYTES] [--chunks N] [--name HASH]
    provide_client.py URL KEYS submit RUN [--name NAME] [--referee KEY] [--keep N]      prints the job
    provide_client.py URL KEYS wait JOB STATE...                                        prints the job's state
    provide_client.py URL KEYS many RUN COUNT       COUNT jobs, one after the other, all deleted at the end; prints their run roots
    provide_client.py URL KEYS ask PROGRAM OTHER [--count N] [--signed-for KEY] [--unsigned]    as a referee, for the commitment

URL is as `verde provide` prints it, KEYS a folder of `verde keygen`, RUN one of `verde run`. `request` and `ask` print the status, a space and the body.
PROGRAM is a program hash, OTHER the key of a second provider. An `ask` repeated has the same bytes.
"""
import argparse
import base64
import hashlib
import http.client
import json
import os
import re
import ssl
import struct
import subprocess
import sys
import tempfile
import time

VERDE = "application/vnd.verde.%s+json"
TYPE = VERDE % "request"
ELEMENT = {1: 4, 2: 4, 3: 1, 4: 2, 5: 2, 6: 2}


def canonical(payload):
    return json.dumps(payload, sort_keys=True, separators=(",", ":")).encode()


class Client:
    def __init__(self, url, keys):
        where, self.provider = re.fullmatch(r"https://(.*)#([0-9a-f]{64})", url).groups()
        self.host, self.port = where.rsplit(":", 1)
        self.keys = keys
        with open(os.path.join(keys, "key.pub")) as file:
            self.key = file.read().strip()
        self.context = ssl._create_unverified_context()  # these tests do not check the server
        self.connection = None

    def sign(self, message):
        with tempfile.NamedTemporaryFile() as file:
            file.write(message)
            file.flush()
            return subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", os.path.join(self.keys, "key.pem"), "-in", file.name],
                                  check=True, capture_output=True).stdout

    def note(self, kind, payload):
        message = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
        return {"payload": base64.b64encode(payload).decode(), "payloadType": kind,
                "signatures": [{"keyid": self.key, "sig": base64.b64encode(self.sign(message)).decode()}]}

    def signed(self, method, path, body, provider, turn):
        payload = canonical({"body": hashlib.sha256(body).hexdigest(), "length": len(body), "method": method, "path": path,
                             "provider": provider or self.provider, "verde": 1, **turn})
        return base64.b64encode(json.dumps(self.note(TYPE, payload)).encode()).decode()

    def header(self, method, path, body, skew=0, nonce=None, provider=None):
        return self.signed(method, path, body, provider, {"nonce": nonce or os.urandom(16).hex(), "time": int(time.time()) + skew})

    def ask(self, program, other, count, provider, signed):
        """A referee's first question (sections 3.3, 4.1 and 8.1)."""
        assignment = canonical({"nonce": "0" * 64, "program": program, "providers": [self.provider, other], "referee": self.key, "verde": 1})
        named = hashlib.sha256(b"verde/assignment/1\0" + assignment).hexdigest()
        question = canonical({"ask": "commit", "assignment": named, "verde": 1})
        body = json.dumps({"assignment": self.note(VERDE % "assignment", assignment), "question": self.note(VERDE % "question", question)}).encode()
        headers = {"Verde-Request": self.signed("POST", "/v1/ask", body, provider, {"count": count})} if signed else {}
        connection = http.client.HTTPSConnection(self.host, int(self.port), context=self.context, timeout=600)
        connection.request("POST", "/v1/ask", body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def request(self, method, path, body=b"", signed=True, **how):
        headers = {"Verde-Request": self.header(method, path, body, **how)} if signed else {}
        for again in (False, True):
            try:
                self.connection = self.connection or http.client.HTTPSConnection(self.host, int(self.port), context=self.context, timeout=600)
                self.connection.request(method, path, body=body if body else None, headers=headers)
                answer = self.connection.getresponse()
                return answer.status, answer.read()
            except (http.client.HTTPException, OSError):
                self.connection = None
                if again:
                    raise
                if signed:  # the first one may have arrived
                    headers = {"Verde-Request": self.header(method, path, body, **how)}
        raise AssertionError

    def upload(self, data, chunk=8 << 20, chunks=None, name=None):
        name = name or hashlib.sha256(data).hexdigest()
        status, text = self.request("GET", "/v1/blobs/" + name)
        state = json.loads(text)
        while not state["complete"] and chunks != 0:
            have = state["have"]
            if have == len(data):  # the provider is still hashing them
                time.sleep(0.1)
                status, text = self.request("GET", "/v1/blobs/" + name)
                state = json.loads(text)
                if status != 200:
                    break
                continue
            status, text = self.request("PUT", "/v1/blobs/%s?size=%d&from=%d" % (name, len(data), have), data[have:have + chunk])
            state = json.loads(text)
            if status != 200:
                break
            chunks = chunks and chunks - 1
        return status, text


def data_of(program):
    """The bytes of each data tensor (PROTOCOL.md section 1.2)."""
    at = 2 + len("verde program") + 2 + 2 + 24
    count, = struct.unpack_from("<I", program, at)
    at += 4
    for _ in range(count):
        length, = struct.unpack_from("<H", program, at)
        at += 2 + length
        dtype, ndim = program[at], program[at + 1]
        size = ELEMENT[dtype]
        for dim in struct.unpack_from("<%dQ" % ndim, program, at + 2):
            size *= dim
        at += 2 + 8 * ndim + 32
        yield size


def blobs_of(run):
    with open(os.path.join(run, "program"), "rb") as file:
        program = file.read()
    with open(os.path.join(run, "data.json")) as file:
        places = json.load(file)["data"]
    data = []
    for size, place in zip(data_of(program), places):
        with open(os.path.join(run, place["file"]), "rb") as file:
            file.seek(place["offset"])
            data.append(file.read(size))
    return program, data


def submit(client, run, name, referees, keep):
    program, data = blobs_of(run)
    for blob in [program] + data:
        status, text = client.upload(blob)
        if status != 200:
            return status, text
    hashes = [hashlib.sha256(blob).hexdigest() for blob in data]
    body = {"data": hashes, "name": name, "program": hashlib.sha256(program).hexdigest(), "referees": referees, "verde": 1}
    if keep:
        body["keep"] = keep
    return client.request("POST", "/v1/jobs", json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode())


def wait(client, job, states):
    end = time.time() + 1200
    while time.time() < end:
        status, text = client.request("GET", "/v1/jobs/" + job)
        if status == 200 and json.loads(text)["state"] in states:
            return json.loads(text)
        time.sleep(0.1)
    raise SystemExit("job %s is not %s in time: %s" % (job, " or ".join(states), text.decode()))


def many(client, run, count):
    jobs = []
    for i in range(count):
        status, text = submit(client, run, "%s-%d" % (client.key[:8], i), [], None)
        if status != 200:
            raise SystemExit("job %d: %d %s" % (i, status, text.decode()))
        jobs.append(json.loads(text)["job"])
    for job in jobs:
        state = wait(client, job, ["done", "failed"])
        print(state.get("run_root", state.get("error")))
    status, text = client.request("GET", "/v1/jobs")
    if sorted(job["job"] for job in json.loads(text)["jobs"]) != sorted(jobs):
        raise SystemExit("the list of jobs is not what was submitted")
    for job in jobs:
        if client.request("DELETE", "/v1/jobs/" + job)[0] != 200:
            raise SystemExit("job %s cannot be deleted" % job)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("keys")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("request")
    one.add_argument("method")
    one.add_argument("path")
    one.add_argument("--body")
    one.add_argument("--skew", type=int, default=0)
    one.add_argument("--nonce")
    one.add_argument("--signed-for")
    one.add_argument("--unsigned", action="store_true")
    one = commands.add_parser("upload")
    one.add_argument("file")
    one.add_argument("--chunk", type=int, default=8 << 20)
    one.add_argument("--chunks", type=int)
    one.add_argument("--name")
    one = commands.add_parser("submit")
    one.add_argument("run")
    one.add_argument("--name", default="toy")
    one.add_argument("--referee", action="append", default=[])
    one.add_argument("--keep", type=int)
    one = commands.add_parser("wait")
    one.add_argument("job")
    one.add_argument("state", nargs="+")
    one = commands.add_parser("ask")
    one.add_argument("program")
    one.add_argument("other")
    one.add_argument("--count", type=int, default=1)
    one.add_argument("--signed-for")
    one.add_argument("--unsigned", action="store_true")
    one = commands.add_parser("many")
    one.add_argument("run")
    one.add_argument("count", type=int)
    args = parser.parse_args()
    client = Client(args.url, args.keys)
    if args.command == "request":
        body = open(args.body, "rb").read() if args.body else b""
        status, text = client.request(args.method, args.path, body, not args.unsigned, skew=args.skew, nonce=args.nonce,
                                      provider=args.signed_for)
        print(status, text.decode())
    elif args.command == "ask":
        status, text = client.ask(args.program, args.other, args.count, args.signed_for, not args.unsigned)
        print(status, text.decode())
    elif args.command == "upload":
        status, text = client.upload(open(args.file, "rb").read(), args.chunk, args.chunks, args.name)
        print(status, text.decode())
    elif args.command == "submit":
        status, text = submit(client, args.run, args.name, args.referee, args.keep)
        print(json.loads(text)["job"] if status == 200 else "%d %s" % (status, text.decode()))
        sys.exit(status != 200)
    elif args.command == "many":
        many(client, args.run, args.count)
    else:
        print(json.dumps(wait(client, args.job, args.state)))


if __name__ == "__main__":
    main()
