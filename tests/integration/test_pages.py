"""The pages, as a browser without JavaScript shows them."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin, urlparse

import pytest

from integration.browser import Browser, find_chromium
from integration.conftest import Once, publish
from integration.faults import FAULTS
from integration.surface import PACKAGES, UNMEASURED, hfreg, hfreg_here, host

pytestmark = [pytest.mark.build, pytest.mark.browser]

WIDTHS = {"wide": 1280, "narrow": 390}


@pytest.fixture(scope="session")
def various(once: Once, home: dict[str, str], faulty_package: Path) -> Path:
    """A registry with something of everything: measured, emulated, failed, in two kernel languages."""

    def fill(registry: Path) -> None:
        here = ("--target", host())
        publish(registry, home, PACKAGES / "relu", *here, "--target", "wasm32-simd", "--measure", "quick")
        publish(registry, home, PACKAGES / "softmax", *here, *UNMEASURED)
        publish(registry, home, faulty_package, *here, *UNMEASURED, status=1)

    return once("various", fill)


@pytest.fixture(scope="session")
def site(once: Once, home: dict[str, str], various: Path) -> Path:
    def fill(folder: Path) -> None:
        result = hfreg("matrix", "pages", folder, "--registry", various, env=home)
        assert result.status == 0, str(result)

    return once("site", fill)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("needs Chromium")
    with Browser(program, tmp_path_factory.mktemp("profile")) as started:
        yield started


class Links(HTMLParser):
    """What a page links to, and where links into it can lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.scripts = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.links += [value for name in ("href", "src") if (value := attributes.get(name))]
        self.scripts += tag == "script"
        if attributes.get("id"):
            self.anchors.add(str(attributes["id"]))


def pages(site: Path) -> list[str]:
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))


def test_the_pages_that_must_be_there(site: Path) -> None:
    assert set(pages(site)) == {
        "index.html",
        "operators/faulty.html",
        "operators/relu.html",
        "operators/softmax.html",
        f"passports/faulty@1.0.0-{host()}.html",
        f"passports/relu@1.0.0-{host()}.html",
        "passports/relu@1.0.0-wasm32-simd.html",
        f"passports/softmax@1.0.0-{host()}.html",
    }


def test_no_link_is_broken_and_every_page_is_reached(site: Path) -> None:
    parsed = {name: Links((site / name).read_text()) for name in pages(site)}
    reached, waiting = {"index.html"}, ["index.html"]
    while waiting:
        page = waiting.pop()
        for link in parsed[page].links:
            target, anchor = urldefrag(urljoin(f"http://site/{page}", link))
            assert urlparse(target).netloc == "site", f"{page} needs {link} from elsewhere"
            name = urlparse(target).path.removeprefix("/").replace("%40", "@")
            assert (site / name).is_file(), f"{page} links to {link}, which is not there"
            if anchor:
                assert anchor in parsed[name].anchors, f"{page} links to {link}, but {name} has no such place"
            if name in parsed and name not in reached:
                reached.add(name)
                waiting.append(name)
    assert reached == set(parsed)
    assert all(page.scripts == 0 for page in parsed.values())


@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_opens_without_a_complaint(
    width: str, site: Path, address: str, browser: Browser, shared: Path
) -> None:
    """Also that no page is wider than its window: what is wide scrolls within itself."""
    pictures = shared / "screenshots"
    pictures.mkdir(exist_ok=True)
    for name in pages(site):
        browser.open(address + name, width=WIDTHS[width])
        assert browser.complaints == [], name
        browser.screenshot(pictures / f"{name.replace('/', '-')}.{width}.png")
        assert browser.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width], name
        assert browser.evaluate("document.querySelectorAll('h1').length") == 1
        assert browser.evaluate("document.title")


def text_of(browser: Browser, url: str) -> str:
    browser.open(url)
    return str(browser.evaluate("document.body.innerText"))


def test_the_matrix_page(address: str, browser: Browser) -> None:
    text = text_of(browser, address + "index.html")
    rows = {line.split()[0]: line for line in text.splitlines() if "1.0.0" in line}
    assert "verified" in rows["relu"] and "3/3" in rows["relu"]
    assert "partial" in rows["faulty"] and f"1/{len(FAULTS)}" in rows["faulty"]
    for target in (host(), "wasm32-simd", "aether", "nova-n200", "spark"):
        assert target in text
    assert "planned" in rows["softmax"]


def test_the_page_of_an_operator(address: str, browser: Browser) -> None:
    text = text_of(browser, address + "operators/softmax.html")
    for part in ("x: T[outer... n inner...]", "axis: int = -1", "class E5", "bfloat16", "last", "inner", "Apache-2.0"):
        assert part in text, part
    assert text.count("published without kernels for this target") > 0


def test_the_page_of_a_passport(address: str, browser: Browser, various: Path) -> None:
    text = text_of(browser, f"{address}passports/relu@1.0.0-{host()}.html")
    statements = hfreg_here("verify", "relu", "--registry", various, "--json").json()["passports"]
    native = next(p for p in statements if p[1]["predicate"]["target"]["name"] == host())
    verification = native[1]["predicate"]
    for part in (
        native[0]["signer"],
        native[0]["statement"],
        native[1]["statement"],
        "self-attested",
        verification["environment"]["cpuModel"],
        verification["kernels"][0]["digest"],
        "hidden-65k",
        "feature-map-1m",
        "onnxruntime",
        "D5 shapes",
    ):
        assert part in text, part


def test_a_failed_passport_says_what_failed(address: str, browser: Browser) -> None:
    text = text_of(browser, f"{address}passports/faulty@1.0.0-{host()}.html")
    assert f"1 of {len(FAULTS)} kernels passed" in text
    for part in ("SIGSEGV", "no answer after 20 s", "were never written", "behind its memory", "no such luck"):
        assert part in text, part


def test_an_emulated_passport_has_no_times(address: str, browser: Browser) -> None:
    text = text_of(browser, f"{address}passports/relu@1.0.0-wasm32-simd.html")
    assert "Emulated" in text
    assert "Median" not in text


def test_dark_mode(address: str, browser: Browser, shared: Path) -> None:
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    try:
        browser.open(address + "index.html")
        browser.screenshot(shared / "screenshots" / "index.dark.png")
        background = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == "rgb(20, 23, 26)"
    finally:
        browser.call("Emulation.setEmulatedMedia", features=[])


def test_the_pages_are_the_same_each_time(site: Path, various: Path, tmp_path: Path) -> None:
    result = hfreg_here("matrix", "pages", tmp_path / "again", "--registry", various)
    assert result.status == 0
    files = {path.relative_to(site): path.read_bytes() for path in site.rglob("*") if path.is_file()}
    again = tmp_path / "again"
    assert {path.relative_to(again): path.read_bytes() for path in again.rglob("*") if path.is_file()} == files
    assert f"{len(files)} files written" in result.out


def test_the_bundles_beside_the_pages_verify(site: Path) -> None:
    for path in site.rglob("*.sigstore.json"):
        assert hfreg_here("verify", path).status == 0
