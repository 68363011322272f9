"""No product depends on the fonts of the machine."""

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def hide_system_fonts() -> None:
    """Have this process, and those it starts, measure and draw text with the fonts that the tools carry themselves.

    Call it before the first text is drawn. It holds where fontconfig says which fonts there are, on Linux.
    """
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "none").mkdir()
    config = folder / "fonts.conf"
    # Without any folder the system's fonts come back.
    config.write_text('<fontconfig><dir prefix="relative">none</dir></fontconfig>\n', encoding="utf-8")
    os.environ["FONTCONFIG_FILE"] = str(config)
