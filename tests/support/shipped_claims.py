"""The shipped published findings, read once for all tests."""

from pathlib import Path

from ttf.study.configuration.claims import load_claims

DOCUMENT = load_claims(Path(__file__).parents[2] / "config/claims.yaml")
CLAIMS = DOCUMENT["claims"]
