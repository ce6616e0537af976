#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Take the picture of the page that README.md shows, from the demo, in a headless Chromium.

    take_picture.py DIAL9 TRACE OUTPUT.png [WIDTH HEIGHT]

As `dial9 report --html` writes it, opened on the worst finding, as it opens.  Takes no package: it speaks to the browser
by the pipe of --remote-debugging-pipe.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

READY = "document.querySelector('.finding') && !document.querySelector('progress:not([hidden])') ? 1 : 0"


class Browser:
    def __init__(self, folder):
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if not program:
            sys.exit("there is no chromium")
        to_browser, self.to = os.pipe()
        self.read_end, from_browser = os.pipe()

        def numbers():
            taken = os.dup(to_browser), os.dup(from_browser)
            os.dup2(taken[0], 3)
            os.dup2(taken[1], 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
             f"--user-data-dir={folder}"], preexec_fn=numbers, close_fds=False, stderr=subprocess.DEVNULL)
        self.number, self.session, self.rest = 0, None, b""

    def call(self, method, **parameters):
        """The answer of the browser to |method|; what it tells meanwhile is left out."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                self.rest += os.read(self.read_end, 1 << 20) or sys.exit("the browser has ended")
            text, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.number:
                return answer["result"] if "result" in answer else sys.exit(f"{method}: {answer['error']}")


def picture(browser, url, width, height):
    """PNG of the page when it shows what it found."""
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    browser.call("Page.navigate", url=url)
    for _ in range(600):
        if browser.call("Runtime.evaluate", expression=READY)["result"].get("value"):
            time.sleep(1)  # lanes are drawn in frames
            return base64.b64decode(browser.call("Page.captureScreenshot", format="png")["data"])
        time.sleep(0.1)
    return sys.exit("the page shows no finding")


def main():
    dial9, trace, output, *size = sys.argv[1:]
    width, height = map(int, size or (1100, 620))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page = os.path.join(folder, "page.html")
        subprocess.run([dial9, "report", "--html", "-o", page, trace], check=True, stderr=subprocess.DEVNULL)
        browser = Browser(os.path.join(folder, "browser"))
        png = picture(browser, f"file://{page}", width, height)
        browser.session = None
        browser.call("Browser.close")
        browser.process.wait()
    with open(output, "wb") as file:
        file.write(png)
    print(f"{output}: {len(png)} bytes")


main()
