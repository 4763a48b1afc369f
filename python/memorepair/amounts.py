"""Exact numbers with units: costs, values, weights, cost weights.

Contract: an amount is rounded once, half up, to 10**-6 of its unit and is an integer of micro-units ever after;
everything that follows is exact. A cost carries its unit; units never mix. NaN, infinities, negative zero, negative
numbers and bools are refused by name.
Source: MemoRepair's objective (lambda on raw units means nothing, so units are kept apart).
"""

from __future__ import annotations

import math
import numbers
import re
from decimal import Decimal
from fractions import Fraction

import msgspec

from memorepair.errors import InvalidAmountError

MICRO = 1_000_000
MAX_MICRO = 2**62
_UNIT = re.compile(r"[^\W\d_][\w/%.-]{0,31}")
_COST = re.compile(rf"\s*([0-9]{{1,40}}(?:\.[0-9]{{1,40}})?(?:[eE][+-]?[0-9]{{1,2}})?)\s*({_UNIT.pattern})\s*\Z")
_WEIGHT = re.compile(r"\s*[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,2})?(?:/[0-9]{1,40})?\s*\Z")
MAX_EXPONENT = 100
# What has the form of a number and was refused was too long or too far from 1; the message then says so.
_LONG = r"\s*[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_LONG_WEIGHT = re.compile(rf"{_LONG}(?:/[0-9]+)?\s*\Z")
_LONG_COST = re.compile(rf"{_LONG}\s*{_UNIT.pattern}\s*\Z")


class Cost(msgspec.Struct, frozen=True, gc=False):
    """A cost in micro-units of `unit`."""

    micro: int
    unit: str

    @property
    def amount(self) -> Fraction:
        """The cost in its unit, exactly."""
        return Fraction(self.micro, MICRO)

    def __str__(self) -> str:
        return f"{shown(self.micro)} {self.unit}"


def exact(number: object, what: str) -> Fraction:
    """Return a finite, non-negative number exactly; raise InvalidAmountError otherwise."""
    if isinstance(number, bool) or not isinstance(number, (numbers.Real, Decimal)):
        raise InvalidAmountError(f"{what}: expected a number, got {number!r} ({type(number).__name__})")
    if isinstance(number, numbers.Rational):
        fraction = Fraction(int(number.numerator), int(number.denominator))
    elif isinstance(number, Decimal):
        is_plain = number.is_finite() and not (number.is_zero() and number.is_signed())
        if not is_plain or abs(number.adjusted()) > MAX_EXPONENT or len(number.as_tuple().digits) > MAX_EXPONENT:
            raise InvalidAmountError(f"{what}: expected a finite number >= 0 of sensible size, got {brief(number)}")
        fraction = Fraction(number)
    else:
        value = float(number)
        if not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0):
            raise InvalidAmountError(f"{what}: expected a finite number >= 0, got {value!r}")
        fraction = Fraction(value)
    if fraction < 0:
        raise InvalidAmountError(f"{what}: expected a number >= 0, got {brief(number)}")
    return fraction


def to_micro(number: object, what: str) -> int:
    """Return `number` in micro-units, rounded half up; below 2**62."""
    micro = (exact(number, what) * MICRO * 2 + 1) // 2
    if micro >= MAX_MICRO:
        raise InvalidAmountError(
            f"{what}: expected less than 2**62 micro-units, got {brief(number)}; use a larger unit"
        )
    return int(micro)


def parse_cost(cost: str | Cost | None, what: str = "cost") -> Cost | None:
    """Parse "250 tokens", "1.5 ms", "0.02 usd"; None stays None."""
    if cost is None:
        return None
    if isinstance(cost, Cost):
        is_whole = isinstance(cost.micro, int) and not isinstance(cost.micro, bool) and 0 <= cost.micro < MAX_MICRO
        if not (is_whole and isinstance(cost.unit, str) and _UNIT.fullmatch(cost.unit)):
            raise InvalidAmountError(f"{what}: expected micro-units from 0 below 2**62 and a unit, got {brief(cost)}")
        return cost
    number, _, unit = cost.partition(" ") if isinstance(cost, str) else ("", "", "")
    if unit.isalpha() and len(unit) <= 32 and number.isdigit() and len(number) <= 12 and (number + unit).isascii():
        return Cost(int(number) * MICRO, unit)  # "250 tokens", as most are
    match = _COST.match(cost) if isinstance(cost, str) else None
    if match is None:
        size = " of sensible size" if isinstance(cost, str) and _LONG_COST.match(cost) else ""
        raise InvalidAmountError(
            f"{what}: expected a number >= 0{size} and a unit, such as '250 tokens', got {brief(cost)}"
        )
    number, unit = match.groups()
    micro = int(number) * MICRO if number.isdigit() and len(number) <= 12 else to_micro(Decimal(number), what)
    return Cost(micro, unit)


def parse_cost_weight(cost_weight: object) -> Fraction:
    """Return lambda exactly: an int, Fraction, Decimal, or text such as "0.3" or "3/10"; a float is refused."""
    if isinstance(cost_weight, float):
        raise InvalidAmountError(
            f"cost_weight: expected an exact number, got the float {cost_weight!r}; write it as text"
        )
    if isinstance(cost_weight, str):
        if not _WEIGHT.match(cost_weight):
            size = " of sensible size" if _LONG_WEIGHT.match(cost_weight) else ""
            raise InvalidAmountError(
                f"cost_weight: expected a number >= 0{size} such as '0.3' or '3/10', got {brief(cost_weight)}"
            )
        try:
            cost_weight = Fraction(cost_weight)
        except (ValueError, ZeroDivisionError):
            raise InvalidAmountError(
                f"cost_weight: expected a number such as '0.3' or '3/10', got {brief(cost_weight)}"
            ) from None
    return exact(cost_weight, "cost_weight")


def brief(value: object) -> str:
    """A value for an error text: never longer than a line, whatever it is."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def shown(micro: int) -> str:
    """Micro-units as a short decimal."""
    text = f"{micro // MICRO}.{micro % MICRO:06d}".rstrip("0")
    return text.rstrip(".")


def share(part: int, whole: int) -> str:
    """A share with two decimals; what is neither nothing nor all is not printed as if it were."""
    if not whole:
        return "-"
    text = f"{float(Fraction(part, whole)):.2f}"
    if text == "1.00" and part < whole:
        return "<1.00"
    return ">0.00" if text == "0.00" and part else text
