"""Checks a built site: every link has a target, nothing is requested from another host, no page is wider than its
window at 390 and 1,280 pixels, light and dark, text has enough contrast, and a search works. Usage: look.py
SITE PICTURES"""

import contextlib
import functools
import http.server
import os
import sys
import threading
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from browser import Browser  # noqa: E402

# Relative luminance of a CSS colour, and the contrast of the main text and its background (WCAG 2.1, 1.4.3).
CONTRAST = """(() => {
  const light = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255).map(x => x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
    return .2126 * v[0] + .7152 * v[1] + .0722 * v[2] };
  const ground = e => { for (; e; e = e.parentElement) { const b = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)|transparent/.test(b)) return b } return 'rgb(255, 255, 255)' };
  const all = [...document.querySelectorAll('[role=main] :is(p, li, td, th, a, code, h1, h2, h3), .navbar a')].filter(e => e.offsetWidth);
  let worst = 99, what = '';
  for (const e of all) { const a = light(getComputedStyle(e).color), b = light(ground(e));
    const c = (Math.max(a, b) + .05) / (Math.min(a, b) + .05); if (c < worst) { worst = c; what = e.tagName + ' ' + e.textContent.slice(0, 40) } }
  return worst < 4.5 ? worst.toFixed(2) + ' at ' + what : '';
})()"""


class Links(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def check_links(site):
    pages = {p: Links(p.read_text()) for p in site.rglob("*.html") if p.name != "404.html"}  # links start at the host
    count, wrong = 0, []
    for page, found in pages.items():
        for link in found.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme in ("http", "https", "data", "mailto"):
                if not link.startswith(("https://", "data:", "mailto:", "http://www.")):
                    wrong.append(f"{page}: {link}")
                continue
            to = Path(os.path.normpath(page.parent / urllib.parse.unquote(url.path))) if url.path else page
            to = to / "index.html" if to.is_dir() else to
            count += 1
            if not to.is_file():
                wrong.append(f"{page.relative_to(site)}: {link}: no such file")
            elif to in pages and urllib.parse.unquote(url.fragment) not in pages[to].anchors:
                wrong.append(f"{page.relative_to(site)}: {link}: no such anchor")
    return count, wrong


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def copyfile(self, source, outputfile):
        with contextlib.suppress(ConnectionError):  # the browser went to the next page
            super().copyfile(source, outputfile)


def main(site, pictures):
    pictures.mkdir(parents=True, exist_ok=True)
    count, wrong = check_links(site)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    here = f"http://127.0.0.1:{server.server_port}/"
    browser, looked = Browser(), 0
    pages = [p for p in sorted(site.rglob("*.html")) if p.name not in ("404.html", "search.html")]
    for page in pages:
        name = str(page.relative_to(site))
        for width in (390, 1280):
            for dark in (False, True):
                browser.look(width, dark)
                browser.open(here + name)
                at = f"{name} at {width} pixels, {'dark' if dark else 'light'}"
                if (wide := browser.run("document.documentElement.scrollWidth")) > width:
                    wrong.append(f"{at}: {wide} pixels wide")
                if worst := browser.run(CONTRAST):
                    wrong.append(f"{at}: contrast {worst}")
                wrong += [f"{at}: {c}" for c in browser.complaints() if not c.startswith(f"asked for {here}")]
                looked += 1
                if name in ("index.html", "docs/reference/operators.html", "docs/performance.html", "docs/tutorials/1-dispute.html"):
                    browser.picture(pictures / f"{page.stem}-{width}-{'dark' if dark else 'light'}.png")
    browser.open(here + "index.html?q=bisects")
    try:
        browser.wait("document.querySelectorAll('#mkdocs-search-results article').length > 0", 30)
    except TimeoutError:
        wrong.append("a search for a word of README.md finds nothing")
    browser.close()
    server.shutdown()
    for line in wrong[:100]:
        print(line)
    if wrong:
        sys.exit(f"{len(wrong)} faults of the site")
    print(f"{count} links lead somewhere; {len(pages)} pages, {looked} looks, none too wide or pale, nothing from elsewhere")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
