"""Make all products independent of the fonts of the machine."""

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def hide_system_fonts() -> None:
    """Make this process and its children measure and draw text with the fonts bundled with the tools.

    Call it before the first text is drawn. It works where fontconfig lists the fonts, that is on Linux.
    """
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "none").mkdir()
    config = folder / "fonts.conf"
    # Without any folder, fontconfig falls back to the system's fonts.
    config.write_text('<fontconfig><dir prefix="relative">none</dir></fontconfig>\n', encoding="utf-8")
    os.environ["FONTCONFIG_FILE"] = str(config)
