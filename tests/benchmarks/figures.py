"""Figures beside what is promised of them, as they come and in one table."""

HEAD = ("what", "floor", "ours", "ratio", "at most", "")
SEEN = []       # of this process, as rows of the table


def line(what, figure, limit, unit, floor="", ours=""):
    """Prints one promise; returns whether it was kept.

    Where it is how many times worse than a floor ours is, `floor` and `ours` have both; `floor` alone is only shown beside it.
    """
    kept = "kept" if figure <= limit else "MISSED"
    print(f"{what:58} {figure:8.2f} {unit:3} of {limit:6.1f}   {kept}", flush=True)
    shown, most = f"{figure:.2f} {unit}", f"{limit:.2f} {unit}"
    SEEN.append((what, floor, ours, shown, most, kept) if ours else (what, floor, shown, "", most, kept))
    return figure <= limit


def table():
    """All of SEEN as Markdown."""
    rows = [HEAD, *SEEN]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])
