"""Control the distribution's Firefox through its Marionette protocol, which needs no driver."""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
_SETTINGS = {
    "network.proxy.type": 1,  # a proxy that does not exist: nothing leaves the machine
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "app.update.disabledForTesting": True,
}
_NARROWEST = 500  # smallest window width; narrower pages are emulated by zoom
# Errors of the page's scripts and styles on the console.
_ERRORS = """const [file] = arguments, {nsIScriptError} = Ci;
return Services.console.getMessageArray().filter((line) => line instanceof nsIScriptError)
  .filter((line) => line.sourceName.startsWith(file) && !(line.flags & nsIScriptError.warningFlag))
  .map((line) => line.errorMessage);"""


class Firefox:
    """A window of Firefox without a screen."""

    def __init__(self, port: int, deadline: float) -> None:
        self._file, self._sent = None, 0
        while self._file is None:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                    self._file = connection.makefile("rwb")  # the file keeps the connection open
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        self._read()
        self("WebDriver:NewSession", capabilities={"alwaysMatch": {"acceptInsecureCerts": False}})

    def close(self) -> None:
        self._file.close()

    def _read(self) -> list:
        length = b""
        while (digit := self._file.read(1)) != b":":
            length += digit
        return json.loads(self._file.read(int(length)))

    def __call__(self, command: str, **parameters):
        self._sent += 1
        message = json.dumps([0, self._sent, command, parameters]).encode()
        self._file.write(b"%d:%b" % (len(message), message))
        self._file.flush()
        _, _, error, result = self._read()
        if error:
            raise RuntimeError(f"{command}: {error['error']}: {error['message']}")
        return result.get("value") if isinstance(result, dict) else result

    def evaluate(self, script: str, *arguments, chrome: bool = False):
        self("Marionette:SetContext", value="chrome" if chrome else "content")
        try:
            return self("WebDriver:ExecuteScript", script=script, args=list(arguments), newSandbox=True)
        finally:
            self("Marionette:SetContext", value="content")

    def open(self, page: Path, width: int = 1440, height: int = 900, dark: bool = False) -> list[str]:
        """Open the page at this width and return the errors of its scripts."""
        self.evaluate(
            "Services.console.reset();"
            "Services.prefs.setIntPref('layout.css.prefers-color-scheme.content-override', arguments[0]);",
            0 if dark else 1,
            chrome=True,
        )
        self("WebDriver:SetWindowRect", width=max(width, _NARROWEST), height=height)
        self("WebDriver:Navigate", url=page.as_uri())
        zoom = max(1, _NARROWEST / width)
        self.evaluate("gBrowser.selectedBrowser.fullZoom = arguments[0];", zoom, chrome=True)
        self.evaluate("return new Promise((go) => setTimeout(go, 300));")
        return self.errors(page)

    def errors(self, page: Path) -> list[str]:
        return self.evaluate(_ERRORS, page.as_uri(), chrome=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def firefox(profile: Path) -> Iterator[Firefox]:
    """Yield a Firefox with a new profile in this folder."""
    port = _free_port()
    profile.mkdir()
    settings = _SETTINGS | {"marionette.port": port}
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in settings.items()]
    (profile / "user.js").write_text("".join(lines))
    command = [
        FIREFOX,
        "--headless",
        "--marionette",
        "--remote-allow-system-access",
        "--no-remote",
        "--profile",
        profile,
        "about:blank",
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = subprocess.Popen(
        command, env={"HOME": str(profile), "MOZ_HEADLESS": "1", "PATH": "/usr/bin:/bin"}, **quiet
    )
    try:
        with closing(Firefox(port, time.monotonic() + 30)) as browser:
            yield browser
    finally:
        running.terminate()
        running.wait(timeout=20)
