# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, for tests that look at pages."""
import base64
import json
import os
import shutil
import subprocess

CHROMIUM = shutil.which("chromium")
PATIENCE = 60


class Browser:
    """Chromium, told what to do over a pair of pipes (its DevTools protocol)."""

    def __init__(self, profile, prepare=lambda: None):
        """prepare: runs in the new process before Chromium does"""
        to_browser, from_browser = os.pipe(), os.pipe()

        def connect():
            prepare()
            os.dup2(to_browser[0], 63)
            os.dup2(from_browser[1], 64)
            os.dup2(63, 3)
            os.dup2(64, 4)

        self.process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--user-data-dir=" + profile, "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=connect)
        os.close(to_browser[0])
        os.close(from_browser[1])
        self.out, self.inward = os.fdopen(to_browser[1], "wb", 0), os.fdopen(from_browser[0], "rb")
        self.n, self.rest, self.session, self.complaints = 0, b"", None, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(domain + ".enable")

    def hear(self):
        while b"\0" not in self.rest:
            part = os.read(self.inward.fileno(), 1 << 20)
            if not part:
                raise EOFError("Chromium has ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **params):
        self.n += 1
        call = {"id": self.n, "method": method, "params": params}
        if self.session:
            call["sessionId"] = self.session
        self.out.write(json.dumps(call).encode() + b"\0")
        while True:
            heard = self.hear()
            if heard.get("method") == "Log.entryAdded" and heard["params"]["entry"]["level"] == "error":
                self.complaints.append(heard["params"]["entry"]["text"])
            if heard.get("method") == "Runtime.exceptionThrown":
                self.complaints.append(str(heard["params"]))
            if heard.get("id") == self.n:
                if "error" in heard:
                    raise RuntimeError(heard["error"])
                return heard["result"]

    def value(self, expression):
        return self.ask("Runtime.evaluate", expression=expression)["result"].get("value")

    def look(self, url, width, scheme, scripted=True):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.ask("Emulation.setScriptExecutionDisabled", value=not scripted)
        self.ask("Page.navigate", url=url)

    def picture(self, path):
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def end(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.out.close()
        self.inward.close()
