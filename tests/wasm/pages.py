#!/usr/bin/env python3
"""verify.html and pages of verdicts in headless Chromium, beside `verde verify`.

Usage: pages.py BUILD PART...   (PART: kinds, altered, looks, hostile, golden)

BUILD/tests/pages_browser has the verdicts of test_verdict_kinds; pictures of pages are kept there."""

import base64
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parent / "independent")]

from browser import Browser  # noqa: E402

DECIDE = """window.decideText = (text) => new Promise((done) => {
    const result = document.getElementById("result");
    const watch = new MutationObserver(() => {
        if (result.hidden) return;
        watch.disconnect();
        done([Number(result.dataset.code), document.getElementById("said").textContent]);
    });
    watch.observe(result, { attributes: true });
    decide("a verdict", Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
}); 1"""
SOUND = "window.called = 0; window.hostile = () => window.called++;"


class Verifier:
    """verify.html in a browser."""

    def __init__(self, build):
        self.browser = Browser()
        self.browser.open(build / "share/verde/verify.html")
        self.browser.run(DECIDE)

    def decide(self, data):
        return tuple(self.browser.run(f"decideText('{base64.b64encode(data).decode()}')"))


def fail(text):
    raise SystemExit(text)


def quiet(browser, what):
    bad = browser.complaints()
    if bad:
        fail(f"{what}: {bad}")


def kinds(build):
    """Checks that verify.html gives the command's code and text for every kind of verdict."""
    verifier, count = Verifier(build), 0
    files = sorted((build / "tests/pages_browser").glob("*.json"))
    for path in files:
        told = subprocess.run([build / "bin/verde", "verify", path], check=False, capture_output=True, text=True)
        code, said = verifier.decide(path.read_bytes())
        if (code, said) != (told.returncode, told.stdout):
            fail(f"{path.name}: the page says {code} {said!r}, verde {told.returncode} {told.stdout!r}{told.stderr!r}")
        count += 1
    verifier.browser.run("document.getElementById('result').hidden = true")
    verifier.browser.choose("#file", files[0])
    verifier.browser.wait("!document.getElementById('result').hidden")
    if verifier.browser.run("document.getElementById('outcome').textContent") != "This verdict holds":
        fail("a chosen file is not decided")
    quiet(verifier.browser, "verify.html")
    verifier.browser.close()
    if count < 30:
        fail(f"{count} kinds of verdicts alone")
    return f"{count} kinds of verdicts"


def altered(build, total=300):
    """Altered verdicts get the same code and the same sentence. A page that accepts everything is noticed."""
    from altered import Judge, variant
    from verdicts import Base

    bases = [Base(path) for path in sorted((build / "tests/pages_browser").glob("*.json"))]
    verifier, judge = Verifier(build), Judge(build / "tests/judge")
    codes, found, refused = {}, 0, b""
    for i in range(total):
        _, way, data = variant(bases, "page", i, None)
        judge.send(data)
        code, why = judge.decision()
        mine, said = verifier.decide(data)
        if mine != code or (code and said.rstrip("\n") != why):
            fail(f"{way} {i}: the page says {mine} {said!r}, verde {code} {why!r}")
        codes[code] = codes.get(code, 0) + 1
        found += code != 0
        refused = data if code == 6 else refused
    verifier.browser.run("document.getElementById('worker').textContent = "
                         "'onmessage = () => postMessage({ code: 0, said: \"of course\" })'")
    if verifier.decide(refused)[0] != 0:
        fail("a page that takes everything would not be found out")
    verifier.browser.close()
    if not codes.get(0) or found < total // 10:
        fail(f"the altered verdicts are all of one sort: {codes}")
    return f"{total} altered verdicts decided alike, {codes[0]} of which hold"


def look_at(browser, page, kept):
    """Takes pictures in light, dark and on paper, at two widths. Nothing may be cut off, and no error may occur."""
    pictures = set()
    for width in (390, 1280):
        for mood in ("light", "dark", "paper"):
            browser.look(width, dark=mood == "dark", paper=mood == "paper")
            browser.open(page)
            quiet(browser, f"{page.name} {mood}")
            if browser.run("document.documentElement.scrollWidth") > width:
                fail(f"{page.name}: wider than {width} pixels")
            cut = browser.run("[...document.querySelectorAll('.card')].filter((c) => c.scrollWidth > c.clientWidth).length")
            if cut:
                fail(f"{page.name}: {cut} cards are cut at {width} pixels")
            picture = kept / f"{page.stem}-{width}-{mood}.png"
            browser.picture(picture)
            pictures.add(picture.read_bytes())
    if len(pictures) != 6:
        fail(f"{page.name}: light, dark and paper look the same")
    return len(pictures)


def looks(build):
    """Checks pages of all sizes. Pages of verdicts decide them again."""
    work, browser, count = build / "tests/pages_browser", Browser(), 0
    browser.look(1280)
    browser.open("data:text/html,<script>console.error('seen')</script>")
    if not browser.complaints():
        fail("what goes wrong would not be seen")
    for page in sorted((work / "reports").glob("*.html")):
        count += look_at(browser, page, work)
        for element in (".outcome", "dl", "h2"):
            if not browser.run(f"!!document.querySelector('{element}')"):
                fail(f"{page.name}: no {element}")
    for name in ("element", "fold", "many-again", "fraud-element", "collection", "agreed"):
        page = work / f"{name}.html"
        verdict = work / f"{name}.json"
        subprocess.run([build / "bin/verde", "inspect", verdict, "--html", page], check=True)
        count += look_at(browser, page, work)
        for element in (".outcome", "table", "dl", "details", "#again", "svg" if name != "agreed" else "h2"):
            if not browser.run(f"!!document.querySelector('{element}')"):
                fail(f"{name}: no {element}")
        browser.look(1280)
        browser.open(page)
        browser.run("document.getElementById('again').click()")
        browser.wait("!document.getElementById('result').hidden")
        if browser.run("document.getElementById('outcome').textContent") != "This verdict holds":
            fail(f"{name}: its own verifier says otherwise")
        quiet(browser, name)
    browser.close()
    return f"{count} pictures"


def hostile(build):
    """Markup in names and in what the referee saw stays text. Without escaping, the test would notice it."""
    work, browser = build / "tests/pages_browser", Browser()
    browser.ask("Page.addScriptToEvaluateOnNewDocument", source=SOUND)
    browser.look(1280)
    (work / "heard.html").write_text("<img src=x onerror='hostile()'><script>hostile()</script>")
    browser.open(work / "heard.html")
    browser.wait("window.called === 2")
    sources = [work / "markup.json", sign_again(work)]
    for i, source in enumerate(sources):
        verdict = work / "<img src=x onerror=hostile()>.json"
        verdict.write_bytes(source.read_bytes())
        page = work / "hostile.html"
        subprocess.run([build / "bin/verde", "inspect", verdict, "--html", page], check=True)
        verdict.unlink()
        browser.open(page)
        browser.run("document.querySelectorAll('details').forEach((d) => (d.open = true))")
        browser.run("document.getElementById('again').click()")
        browser.wait("!document.getElementById('result').hidden")
        found = browser.run("[called, document.images.length, document.scripts.length]")
        if found != [0, 0, 4]:
            fail(f"a hostile verdict does something: {found}")
        if "hostile()" not in browser.run("document.querySelector('main').textContent"):
            fail("what is hostile is not there as text")
        quiet(browser, f"a hostile verdict, {i}")
    browser.close()
    return f"{len(sources)} hostile verdicts do nothing"


def sign_again(work):
    """Makes a verdict whose referee gives a reason with markup for a missing answer."""
    import json

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    note = json.loads((work / "silence.json").read_text())
    statement = json.loads(base64.b64decode(note["payload"]))
    for item in statement["predicate"]["evidence"]:
        if "absent" in item:
            item["absent"] = "</p></details><script>hostile()</script><img src=x onerror=hostile()>"
    payload = json.dumps(statement, separators=(",", ":")).encode()
    kind = note["payloadType"].encode()
    message = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    key = Ed25519PrivateKey.from_private_bytes(b"\xee" * 32)
    note["payload"] = base64.b64encode(payload).decode()
    note["signatures"][0]["sig"] = base64.b64encode(key.sign(message)).decode()
    path = work / "absent.hostile"
    path.write_text(json.dumps(note))
    return path


RUN = """window.start = async (text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0)), none = () => 52;
    const wasi_snapshot_preview1 = { fd_close: none, fd_seek: none, fd_write: none };
    const { instance } = await WebAssembly.instantiate(bytes, { wasi_snapshot_preview1 });
    window.x = instance.exports;
    x._initialize();
    window.said = () => {
        const bytes = new Uint8Array(x.memory.buffer, x.said());
        return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
    };
    window.golden = (line, most) => {
        new Uint8Array(x.memory.buffer, x.line()).set(new TextEncoder().encode(line + "\\0"));
        return [x.golden(most), said()];
    };
}; 1"""


def golden(build, most=1e6):
    """Computes the golden table with the reference, elementary functions, and subnormal numbers."""
    browser = Browser(600)
    browser.open("about:blank")
    browser.run(RUN)
    module = base64.b64encode((build / "wasm/reference.wasm").read_bytes()).decode()
    browser.run(f"start('{module}')")
    if browser.run("x.subnormals()") != 0:
        fail("subnormal numbers are lost")
    lines = [line for line in Path("tests/golden/ops.txt").read_text().splitlines() if line[0] != "#"]
    count = {0: 0, 2: 0}
    for line in lines:
        code, said = browser.run(f"golden({line!r}, {most})")
        if code not in count:
            fail(f"{said}, expected {line.split()[-1]}")
        count[code] += 1
    wrong = browser.run(f"golden({lines[0][:-1] + 'g'!r}, {most})")
    if wrong[0] != 1:
        fail("another hash would not be noticed")
    for i, line in enumerate(Path("tests/golden/functions.txt").read_text().splitlines()):
        want, name = line.split()
        if browser.run(f"x.function({i}), said()") != f"{name} {want}":
            fail(f"{name}: {browser.run('said()')}, expected {want}")
    browser.close()
    if count[0] < 500:
        fail(f"{count[0]} cases alone")
    return f"{count[0]} golden cases and 8 functions, {count[2]} larger cases left out"


if __name__ == "__main__":
    parts = {"kinds": kinds, "altered": altered, "looks": looks, "hostile": hostile, "golden": golden}
    for part in sys.argv[2:]:
        name, _, number = part.partition("=")
        print(parts[name](Path(sys.argv[1]), *([float(number) if name == "golden" else int(number)] if number else [])))
