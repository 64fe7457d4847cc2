"""One measured figure, beside what it is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured, ours and the reference in the same unit, from the same run on the same machine."""

    what: str
    ours: float
    reference: float | None
    unit: str

    @property
    def ratio(self) -> float | None:
        """Ours as a multiple of the reference: for rates more is better, for times less."""
        return self.ours / self.reference if self.reference else None

    def row(self) -> str:
        """A line of the table: `what | ours | reference | ratio`."""
        reference = f"{self.reference:,.4g} {self.unit}" if self.reference is not None else "-"
        ratio = f"{self.ratio:.2f} ×" if self.ratio is not None else "-"
        return f"{self.what} | {self.ours:,.4g} {self.unit} | {reference} | {ratio}"
