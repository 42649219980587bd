"""What `posthorn doctor` finds."""

from dataclasses import dataclass

MARKS = {True: "ok", False: "FAIL", None: "note"}


@dataclass(frozen=True)
class Finding:
    """One line of the answer. `good`: whether all is well; None: it works, but could be better."""

    good: bool | None
    what: str
    remedy: str = ""

    def __str__(self):
        return f"{MARKS[self.good]:4}  {self.what}{f': {self.remedy}' if self.remedy else ''}"

    def to_dict(self):
        """As it is printed for scripts."""
        return {"status": MARKS[self.good].lower(), "what": self.what, "remedy": self.remedy or None}
