"""The report in a real browser: nothing sticks out, all links lead somewhere, nothing is amiss."""

from collections.abc import Generator
from pathlib import Path

import pytest

from browser import Browser, browser, installed
from reports import hostile, report_for, story
from waiting import eventually
from windlass.views.report import report_of
from windlass.views.report.page import page

OVERFLOW = """
(() => {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= wide) return [];
  return [...document.querySelectorAll("body *")]
    .filter(e => e.getBoundingClientRect().right > wide + 1)
    .map(e => e.tagName + "." + e.getAttribute("class")).slice(0, 9);
})()
"""
LOST_LINKS = """
[...document.querySelectorAll("a[href]")].map(a => a.getAttribute("href"))
  .filter(h => !document.getElementById(decodeURIComponent(h.slice(1))))
"""
FAINT = """
(() => {
  const light = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
      .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  const ground = e => { for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (c !== "rgba(0, 0, 0, 0)" && c !== "transparent") return c; }
    return "rgb(255, 255, 255)"; };
  return [...document.querySelectorAll("header *, main *, footer")]
    .filter(e => !e.closest("svg"))
    .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
    .map(e => { const a = light(getComputedStyle(e).color), b = light(ground(e));
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      return ratio < 4.5 ? e.tagName + "." + e.className + " " + ratio.toFixed(2) : ""; })
    .filter(Boolean).slice(0, 9);
})()
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Generator[Browser]:
    program = installed()
    if program is None:
        pytest.skip("there is no Chromium")
    with browser(program, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def test_the_page_in_a_browser(shown: Browser, tmp_path: Path):  # K7, looked at, not only asserted
    world = story()
    (tmp_path / "report.html").write_text(page(report_for(world)), encoding="utf-8")
    entries = [hostile(entry) for entry in world.journal.read()]
    report = report_of(entries, plan="p", workspaces="w")
    assert report is not None
    (tmp_path / "hostile.html").write_text(page(report), encoding="utf-8")
    url = (tmp_path / "report.html").as_uri()
    for width, scheme in ((390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")):
        shown.look(url, width=width, scheme=scheme)
        shown.run("document.querySelectorAll('details').forEach(e => e.open = true)")
        assert shown.run("document.querySelectorAll('details.turn').length") > 10
        assert shown.run(OVERFLOW) == []
        assert shown.run(FAINT) == []
    assert shown.run(LOST_LINKS) == []

    shown.look(f"{url}#T-03/turn-1/prompt", width=1280)
    assert shown.run("document.getElementById('T-03/turn-1').open")
    assert shown.run("document.getElementById('T-03/turn-1/prompt').checkVisibility()")
    button = "document.querySelector('button[data-copy=\"T-03/turn-1/prompt\"]')"
    assert shown.run(f"!{button}.hidden")
    shown.run(f"{button}.click()")
    eventually(lambda: shown.run(f"{button}.textContent") in {"Copied", "Selected"})

    shown.look((tmp_path / "hostile.html").as_uri(), width=390)
    shown.run("document.querySelectorAll('details').forEach(e => e.open = true)")
    assert shown.run(OVERFLOW) == []
    assert shown.run("document.scripts.length") == 1
    assert shown.complaints == []
