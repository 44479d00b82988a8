#!/usr/bin/env python3
"""The pages of `softverbs draw` in headless Chromium: clicks, filters, searches, and how long a frame takes. Writes docs/evidence/look.md.

By hand (`make look`), after a build. Pictures of what was looked at are in build/look/."""
import datetime
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.abspath(f"{HERE}/../..")
sys.path[:0] = [HERE, f"{TOP}/tests/tool"]
import cases  # pylint: disable=wrong-import-position
from browser import BINARY, Browser  # pylint: disable=wrong-import-position
from wrapped import write_page  # pylint: disable=wrong-import-position

PICTURES = f"{cases.BUILD}/look"
PACKETS = 100000
SHARED = f"{TOP}/../shared/wire/captures"
rows = []  # of the evidence

# Frames of a pan through the whole, in equal steps; what a frame took to paint, and the time from one to the next.
PAN = """(async () => {
  const next = () => new Promise(done => requestAnimationFrame(done)), painted = [], between = [];
  let before = await next();
  for (let i = 0; i < FRAMES; i++) {
    draw.scrollTo(draw.view.top + STEP);
    const now = await next();
    await new Promise(done => setTimeout(done));
    painted.push(draw.state.painted);
    between.push(now - before);
    before = now;
  }
  for (const list of [painted, between]) list.sort((a, b) => a - b);
  const at = (list, share) => list[Math.min(list.length - 1, Math.floor(list.length * share))];
  return [at(painted, 0.5), at(painted, 0.95), at(between, 0.5), at(between, 0.95)];
})()"""


def drawn(source):
    page = f"{cases.TEMPORARY}/{os.path.basename(source)}.html"
    cases.expect(cases.softverbs("draw", "-o", page, source), out=None)
    return page


def pingpong(option, path, arguments, *more):
    """Both ends of ibv_rc_pingpong under softverbs run, whose packets or engines go to this file."""
    port = 20000 + os.getpid() % 10000
    one = f"ibv_rc_pingpong -g 0 -p {port} {arguments}"
    script = f"{one} >/dev/null & for i in $(seq 100); do sleep 0.1; {one} localhost >/dev/null 2>&1 && break; done; wait $!"
    done = subprocess.run([cases.SOFTVERBS, "run", "--dir", cases.DIRECTORY, option, path, *more, "--", "sh", "-c", script], check=False, timeout=600,
                          env=cases.environment())
    assert done.returncode == 0, done
    return path


def opened(browser, page, behind=""):
    began = time.monotonic()
    browser.open(page, behind)
    assert not browser.complaints, browser.complaints
    assert len(browser.requests) == 1, browser.requests
    return time.monotonic() - began


def shown(browser):
    return browser.ask("draw.view.rows.length")


def clicks_filters_and_searches(browser):
    """The first actions of a reader; the page must answer by itself."""
    every = shown(browser)
    browser.ask("draw.choose(-1); draw.scrollTo(0)")
    browser.write("#filter", "is:packet")
    left, top, begins = browser.ask("(box => [box.left, box.top, (across => draw.view.loaded.side[draw.view.rows[0]] ? across.right - 20 : across.left + 20)"
                                    "(draw.paint.columns(draw.view))])(document.querySelector('#canvas').getBoundingClientRect())")
    browser.click(left + begins, top + 16)  # where the first arrow begins
    assert browser.ask("draw.view.chosen") >= 0 and "PSN" in browser.ask("document.querySelector('#details').textContent"), "a click chooses no packet"
    assert browser.ask("document.querySelectorAll('#details table tr').length") > 4, "the fields are missing"
    browser.ask("document.querySelector('#canvas').focus()")
    chosen = browser.ask("draw.view.chosen")
    browser.key("j")
    assert browser.ask("draw.view.chosen") > chosen, "j chooses no other packet"
    browser.key("Escape", 27)
    assert browser.ask("document.querySelector('#details').hidden"), "Esc closes nothing"
    browser.write("#filter", "")
    assert shown(browser) == every
    browser.write("#filter", "op:ack")
    acks = shown(browser)
    assert 0 < acks < every, (acks, every)
    browser.write("#filter", "-op:ack")
    assert shown(browser) == every - acks, (shown(browser), every, acks)
    browser.write("#filter", "psn:x")
    assert browser.ask("document.querySelector('#filter').classList.contains('bad')"), "a wrong filter is not named"
    browser.write("#filter", "")
    assert shown(browser) == every, "an empty filter leaves packets out"
    browser.write("#search", "ack")
    found = browser.ask("draw.state.found.length")
    assert found >= acks, (found, acks)
    browser.key("Enter", 13)
    assert browser.ask("draw.state.found.includes(draw.view.chosen)"), "Enter goes to no match"
    browser.write("#search", "")
    for kind in ("linear", "even"):
        browser.ask(f"draw.mode('{kind}')")
        browser.settle()


def pan(browser, name):
    for how, before, step in (("arrows", "draw.choose(-1); draw.zoom(1e-9); draw.zoom(1e9); draw.view.zoom = 22; draw.scrollTo(0)", 97),
                              ("the whole", "draw.whole(); draw.zoom(4)", 9)):
        browser.ask(before)
        browser.settle()
        found = browser.ask(PAN.replace("FRAMES", "200").replace("STEP", str(step)))
        rows.append(f"| {name}, {how} | " + " | ".join(f"{value:.1f}" for value in found) + " |")
        print(f"{name}, {how}: painting a frame takes {found[0]:.1f} ms, 95 of 100 at most {found[1]:.1f}; from frame to frame {found[2]:.1f} and {found[3]:.1f} ms")


def many_packets_stay_fluid():
    page = drawn(pingpong("--capture", f"{cases.TEMPORARY}/many.pcapng", f"-n {PACKETS // 4 + 500} -s 2048"))
    with Browser() as browser:
        took = opened(browser, page)
        assert shown(browser) >= PACKETS, shown(browser)
        print(f"a page of {shown(browser)} packets, {os.path.getsize(page) / 1e6:.0f} MB, opens in {took:.1f} s")
        rows.append(f"| opening {shown(browser):,} packets, {os.path.getsize(page) / 1e6:.0f} MB | {took * 1000:.0f} | | | |")
        pan(browser, f"{shown(browser):,} packets")
        clicks_filters_and_searches(browser)
        browser.picture(f"{PICTURES}/many.png")


def a_capture_with_losses_shows_them():
    page = drawn(pingpong("--capture", f"{cases.TEMPORARY}/losses.pcapng", "-n 400 -s 8192 -m 1024", "--fault", "drop=3%,seed=7"))
    with Browser() as browser:
        opened(browser, page)
        clicks_filters_and_searches(browser)
        browser.write("#filter", "is:lost")
        assert shown(browser) > 0 and browser.ask("draw.view.rows.every(row => draw.view.loaded.marks[row] & draw.view.loaded.bit.lost)")
        browser.write("#filter", "")
        browser.write("#search", "why:timeout")
        browser.key("Enter", 13)
        assert "timeout" in browser.ask("draw.model.causeOf(draw.view.loaded, draw.view.chosen)[0]")
        browser.picture(f"{PICTURES}/losses.png")
        pan(browser, "a capture with losses")


def captures_of_rxe_are_shown():
    with Browser() as browser:
        for name in ("rnr_small_rx", "rping", "ud_pingpong", "rc_pingpong_v6", "mckey"):  # tests/golden has what shared/wire has
            path = f"{SHARED}/{name}.pcap"
            opened(browser, drawn(path if os.path.exists(path) else f"{TOP}/tests/golden/{name}.pcap"))
            assert shown(browser) > 0 and browser.ask("document.querySelectorAll('#pairs button').length") > 0, name
            if name == "rnr_small_rx":
                clicks_filters_and_searches(browser)
            browser.picture(f"{PICTURES}/{name}.png")


def recordings_are_shown_with_their_work():
    with Browser() as browser:
        opened(browser, drawn(f"{TOP}/tests/golden/short-receive.rec"))
        clicks_filters_and_searches(browser)
        browser.write("#filter", "is:completion")
        assert 0 < shown(browser) == browser.ask("draw.view.loaded.rows.filter(row => row && row[draw.model.HAPPENING] === 3).length")
        browser.write("#filter", "")
        browser.write("#search", "is:post")
        browser.key("Enter", 13)
        told = browser.ask("document.querySelector('#details').textContent")
        assert "posts SEND wr_id" in told and "Completion" in told, told
        browser.picture(f"{PICTURES}/recording.png")
        page = drawn(pingpong("--record", f"{cases.TEMPORARY}/long.rec", "-n 2000 -s 2048"))
        opened(browser, page)
        pan(browser, "a recording")


def narrow_and_dark_pages_hold_what_they_show():
    page = drawn(f"{TOP}/tests/golden/no-receive.rec")
    with Browser() as browser:
        for width in (1280, 800, 400):
            for dark in (False, True):
                browser.size(width, 800)
                browser.dark(dark)
                opened(browser, page, "packet=12")
                assert browser.ask("document.documentElement.classList.contains('dark')") == dark
                assert browser.ask("document.documentElement.scrollWidth") <= width, f"{width} pixels are not enough"
                assert browser.ask("document.querySelector('#canvas').getBoundingClientRect().width") >= min(400, width * 0.6), width
                browser.picture(f"{PICTURES}/{width}-{'dark' if dark else 'light'}.png")


CASES = (many_packets_stay_fluid, a_capture_with_losses_shows_them, captures_of_rxe_are_shown, recordings_are_shown_with_their_work,
         narrow_and_dark_pages_hold_what_they_show)


def write_evidence(lines):
    version = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    with write_page(f"{TOP}/docs/evidence/look.md") as file:
        file.write("# Pages in a browser\n\n`make look` opens pages of [`softverbs draw`](../how-to/draw.md) in headless Chromium, clicks, filters and searches as a reader does, and\n"
                   "measures a pan of 200 frames. A page that asks for anything but itself fails, as does one with a complaint in its console.\n\n"
                   f"Last run: {datetime.date.today()}, {version}, without a GPU, {os.cpu_count()} processors, load {os.getloadavg()[0]:.0f}.\n\n"
                   "| case | |\n|---|---|\n" + "\n".join(lines) + "\n\n"
                   "| milliseconds | painting, median | 95 of 100 | frame to frame, median | 95 of 100 |\n|---|---|---|---|---|\n" + "\n".join(rows) + "\n")


def main():
    wanted = sys.argv[1:]
    os.makedirs(PICTURES, exist_ok=True)
    lines, failed = [], 0
    for case in CASES:
        name = case.__name__.replace("_", " ")
        if wanted and not any(word in name for word in wanted):
            continue
        try:
            case()
            lines.append(f"| {name} | yes |")
        except AssertionError as wrong:
            failed += 1
            lines.append(f"| {name} | no: {str(wrong)[:200]} |")
        print(lines[-1], flush=True)
    shutil.rmtree(cases.TEMPORARY, ignore_errors=True)
    if not wanted:
        write_evidence(lines)
    return 1 if failed else 0


if __name__ == "__main__":
    if not BINARY:
        sys.exit("Chromium is not installed: tools/build/setup.sh look")
    sys.exit(main())
