"""A headless Chromium that is driven by the DevTools protocol over two pipes: no port, no library."""
import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import urllib.parse

BINARY = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Clicks are at places of the page, so a pixel is a pixel; nothing asks the network for anything.
OPTIONS = ["--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run",
           "--disable-extensions", "--disable-sync", "--force-device-scale-factor=1", "--hide-scrollbars"]


class Browser:
    """One page of a new Chromium, whose profile is removed with it. The page's complaints are in `complaints`, the addresses it
    requested in `requests`."""

    def __init__(self, width=1280, height=800):
        self.profile = tempfile.TemporaryDirectory(prefix="look-", ignore_cleanup_errors=True)
        to_read, self.to = os.pipe()
        self.answers, to_write = os.pipe()

        def take_pipes():
            ends = os.dup(to_read), os.dup(to_write)
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        sandbox = ["--no-sandbox"] if os.getuid() == 0 else []  # Chromium has no sandbox for root
        self.program = subprocess.Popen([BINARY, *OPTIONS, *sandbox, f"--user-data-dir={self.profile.name}", "about:blank"], preexec_fn=take_pipes,
                                        close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.rest, self.number, self.session, self.loaded = b"", 0, None, False
        self.complaints, self.requests = [], []
        target = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(AssertionError, OSError):  # it may be gone before it answers
            self.session = None
            self.call("Browser.close")
        try:
            self.program.wait(10)
        except subprocess.TimeoutExpired:
            self.program.kill()
            self.program.wait()
        os.close(self.to)
        os.close(self.answers)
        self.profile.cleanup()

    def _message(self):
        while b"\0" not in self.rest:
            part = os.read(self.answers, 1 << 20)
            assert part, "the browser has ended"
            self.rest += part
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def _hear(self, message):
        what, told = message.get("method"), message.get("params", {})
        if what == "Page.loadEventFired":
            self.loaded = True
        elif what == "Runtime.exceptionThrown":
            self.complaints.append(told["exceptionDetails"].get("exception", {}).get("description") or told["exceptionDetails"]["text"])
        elif what == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.complaints.append(told["entry"]["text"])
        elif what == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])

    def call(self, method, **parameters):
        """The result of a method of the protocol."""
        self.number += 1
        asked = {"id": self.number, "method": method, "params": parameters} | ({"sessionId": self.session} if self.session else {})
        data = json.dumps(asked).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        while True:
            message = self._message()
            if message.get("id") == self.number:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            self._hear(message)

    def open(self, path, behind=""):
        """Opens a file of this machine; `behind` is the part after #."""
        self._go("about:blank")  # another part of the same page would load nothing
        self.complaints, self.requests = [], []
        self._go(f"file://{urllib.parse.quote(os.path.abspath(path))}" + (f"#{behind}" if behind else ""))
        self.settle()

    def _go(self, address):
        self.loaded = False
        self.call("Page.navigate", url=address)
        while not self.loaded:
            self._hear(self._message())

    def ask(self, expression):
        """The value of an expression in the page, awaited where it is a promise."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, (expression, result["exceptionDetails"])
        return result["result"].get("value")

    def settle(self):
        """Until what was asked for has been painted."""
        self.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, dark):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def wheel(self, x, y, by):
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=by)

    def write(self, selector, text):
        """Types into a field as a user does, over what was there."""
        self.ask(f"(field => {{ field.focus(); field.select(); }})(document.querySelector({json.dumps(selector)}))")
        if text:
            self.call("Input.insertText", text=text)
        else:
            self.key("Delete", code=46)
        self.settle()

    def key(self, key, code=0):
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **(text if kind == "keyDown" else {}))
        self.settle()

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
