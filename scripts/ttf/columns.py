"""Columns that tables of several analyses share. Polars is not imported: the workflow loads it at each start."""

from ttf.contract import Column, count, share, text


def wilson(blank: str | None = None) -> dict[str, Column]:
    """The ends of Wilson's interval of a share."""
    return {
        "ci_low": share("95 % from", "Lower end of Wilson's 95 % interval.", blank),
        "ci_high": share("95 % to", "Upper end of Wilson's 95 % interval.", blank),
    }


def top_owners(ranked_by: str) -> dict[str, Column]:
    """Which of the owners a row is of. ranked_by: what may put them in order."""
    return {
        "owner_by": text("By", "user or account."),
        "ranked_by": text("Ranked by", ranked_by),
        "top_share": share("Top", "So many of the owners, rounded up to whole ones."),
        "owners": count("Owners", "Owners in all."),
        "owners_in_top": count("of them", "Owners that the row is of."),
    }
