"""What surrounds a study without being any of its business: each has to leave every product as it is, to the byte."""

import shutil
import subprocess
from pathlib import Path

_EMPTY_FONTS = '<fontconfig><dir prefix="relative">none</dir></fontconfig>\n'
# Locales with another decimal sign, and another i.
LOCALES = ("tr_TR", "de_DE")


def surroundings(folder: Path) -> dict[str, dict]:
    """Name -> keywords of whole_study.run_apart; what they need is written into `folder`. Locales where they can be."""
    (folder / "none").mkdir(parents=True)
    (folder / "fonts.conf").write_text(_EMPTY_FONTS)
    older = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512DQ,-AVX512BW,-AVX512CD"
    found = {
        "usual": {},
        "plain C locale": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        "Kathmandu": {"TZ": "Asia/Kathmandu"},
        "Newfoundland": {"TZ": "America/St_Johns"},
        "two threads": {"threads": 2, "POLARS_MAX_THREADS": "2", "OMP_NUM_THREADS": "2"},
        "another order of hashes": {"PYTHONHASHSEED": "4711"},
        "nobody else reads": {"umask": 0o077},
        "no fonts": {"FONTCONFIG_FILE": str(folder / "fonts.conf")},
        "processor of 2013": {
            "NPY_DISABLE_CPU_FEATURES": "X86_V4",
            "OPENBLAS_CORETYPE": "Zen",
            "GLIBC_TUNABLES": older,
        },
        "terminal": {"COLUMNS": "40", "POLARS_FMT_MAX_ROWS": "2", "TERM": "dumb", "NO_COLOR": "1"},
    }
    for name in LOCALES if shutil.which("localedef") else ():
        made = folder / f"{name}.UTF-8"
        # It says what it lacks by its exit code, and by what it wrote.
        subprocess.run(["localedef", "-i", name, "-f", "UTF-8", str(made)], capture_output=True, check=False)
        if (made / "LC_CTYPE").is_file():
            found[name] = {"LOCPATH": str(folder), "LC_ALL": made.name, "LANG": made.name}
    return found
