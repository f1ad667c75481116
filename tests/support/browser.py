"""Headless Chromium, controlled through a pipe with the DevTools protocol; needs only Python's standard library."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time


def find():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    return None


class Browser:
    def __init__(self, seconds=300):
        self.seconds, self.number, self.left, self.events = seconds, 0, b"", []
        self.folder = tempfile.mkdtemp(prefix="verde-browser-")
        out_read, self.out = os.pipe()
        self.into, in_write = os.pipe()

        def wire():  # Chromium reads file descriptor 3 and writes 4
            high = os.dup(out_read), os.dup(in_write)
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
             f"--user-data-dir={self.folder}", "about:blank"],
            preexec_fn=wire, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(out_read)
        os.close(in_write)
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "DOM", "Network"):
            self.ask(f"{domain}.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.folder, ignore_errors=True)

    def message(self, until):
        while b"\0" not in self.left:
            wait = until - time.monotonic()
            if wait <= 0 or not select.select([self.into], [], [], wait)[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.into, 1 << 20)
            if not piece:
                raise EOFError("the browser ended")
            self.left += piece
        text, self.left = self.left.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, **params):
        self.number += 1
        question = {"id": self.number, "method": method, "params": params}
        if hasattr(self, "session"):
            question["sessionId"] = self.session
        data = json.dumps(question).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data) :]
        until = time.monotonic() + self.seconds
        while True:
            answer = self.message(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def run(self, script):
        """The value of an expression in the page; a promise is awaited."""
        result = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def wait(self, script, seconds=300):
        until = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > until:
                raise TimeoutError(script)
            time.sleep(0.02)

    def open(self, path):
        self.events.clear()
        known = str(path).startswith(("data:", "about:", "http:"))
        went = self.ask("Page.navigate", url=str(path) if known else f"file://{os.path.abspath(path)}")
        if went.get("errorText"):
            raise RuntimeError(f"{path}: {went['errorText']}")
        self.wait("document.readyState === 'complete'")

    def look(self, width, dark=False, paper=False, height=900):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media="print" if paper else "screen", features=[scheme])

    def picture(self, path):
        data = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def choose(self, element, path):
        root = self.ask("DOM.getDocument")["root"]["nodeId"]
        node = self.ask("DOM.querySelector", nodeId=root, selector=element)["nodeId"]
        self.ask("DOM.setFileInputFiles", nodeId=node, files=[os.path.abspath(path)])

    def complaints(self):
        """Errors on the console so far, and requests to a network."""
        self.run("1")
        bad = []
        for event in self.events:
            name, params = event.get("method"), event.get("params", {})
            if name == "Runtime.exceptionThrown":
                bad.append(params["exceptionDetails"].get("text", "exception"))
            elif name == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                bad.append(str(params["args"]))
            elif name == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                bad.append(params["entry"]["text"])
            elif name == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "blob:", "data:")):
                bad.append("asked for " + params["request"]["url"])
        return bad


if __name__ == "__main__":
    sys.exit(0 if find() else 77)
