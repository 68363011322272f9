"""Environments that must not change any product of a study by a byte."""

import shutil
import subprocess
from pathlib import Path

_EMPTY_FONTS = '<fontconfig><dir prefix="relative">none</dir></fontconfig>\n'
# Locales with a decimal comma, and with a dotless i.
LOCALES = ("tr_TR", "de_DE")


def surroundings(folder: Path) -> dict[str, dict]:
    """Return keywords of whole_study.run_in_child by name, with locales if localedef exists; write their files."""
    (folder / "none").mkdir(parents=True)
    (folder / "fonts.conf").write_text(_EMPTY_FONTS)
    older = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512DQ,-AVX512BW,-AVX512CD"
    cases = {
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
        locale_folder = folder / f"{name}.UTF-8"
        # localedef exits with an error on mere warnings; the written file shows whether it succeeded.
        subprocess.run(["localedef", "-i", name, "-f", "UTF-8", str(locale_folder)], capture_output=True, check=False)
        if (locale_folder / "LC_CTYPE").is_file():
            cases[name] = {"LOCPATH": str(folder), "LC_ALL": locale_folder.name, "LANG": locale_folder.name}
    return cases
