"""Values of terms as algebraic forms: sums, products and functions, simplified by the laws of real numbers.

- 1 / (a * b) is (1 / a) * (1 / b), and c / c is 1 only where c > 0: 0 / 0 is none.
- exp(log(a)) is a only where a >= 0: the logarithm of a negative number is NaN.
- log(a) and 1 / a are those of a without its scale: log(a) = u + log(a * exp(-u)), where u is the mean exponent of
  what is added up in a. So the maximum that a softmax subtracts may be that of any part.
- What may be infinite, as a choice of -inf, is in no sum, product or difference: it is a function like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from shardpass.proving.scalars.numbers import Field, Numbers


@dataclass(frozen=True, slots=True)
class Form:
    """The value of a term. ``loose``: it may be infinite; ``least``: it is -inf.

    ``mean``: the mean exponent of what is added up; ``scale``: what these are where all atoms are 1, None of an atom.
    ``sign``: 1 where it is not less than 0, 2 where it is greater. ``power``: its exp, where a logarithm is in it.
    ``zeroed``: 0 was added, so that it is not -0; only where that counts.
    """

    at: Numbers
    loose: bool = False
    least: bool = False
    mean: Numbers | None = None
    scale: Numbers | None = None
    sign: int = 0
    power: Form | None = None
    zeroed: bool = False

    @property
    def mark(self) -> int:
        """The value for comparisons and as the argument of functions."""
        return 2 * self.at[0] + self.zeroed


class Reals:
    """Real numbers as values in ``field``; without ``cancels``, a - a is no 0, without ``divides``, a / a no 1."""

    def __init__(self, field: Field, cancels: bool, divides: bool) -> None:
        self.field, self.divides = field, divides
        self.minus = field.number(-1 if cancels else 1)
        self.unit = Form(field.one, scale=field.one, sign=2)
        self.nothing = Form(field.zero, scale=field.zero)

    def function(self, name: object, forms: Sequence[Form], loose: bool | None = None) -> Form:
        """Return a function of values; without ``loose``, one that may be infinite where one of them may."""
        at = self.field.hashed(name, *(f.mark for f in forms))
        return Form(at, any(f.loose for f in forms) if loose is None else loose)

    def of_set(self, name: str, element: str, forms: Sequence[Form], loose: bool = True) -> Form:
        """Return a function of values whose order does not matter."""
        return Form(self.field.hashed(name, element, *sorted(f.mark for f in forms)), loose)

    def added(self, forms: Sequence[Form]) -> Form:
        field = self.field
        scale = field.add(f.scale or field.one for f in forms)
        mean, power = None, None
        if any(f.mean for f in forms) and all(scale):
            total = field.add(field.times(f.mean, f.scale or field.one) for f in forms if f.mean)
            mean = field.times(total, field.inverse(scale))
        if any(f.power for f in forms):
            power = reduce(self.times, [self.exponential(f) for f in forms])
        return Form(
            field.add(f.at for f in forms),
            mean=mean,
            scale=scale,
            sign=max(f.sign for f in forms) if all(f.sign for f in forms) else 0,
            power=power,
            zeroed=any(f.zeroed for f in forms),
        )

    def times(self, x: Form, y: Form) -> Form:
        field = self.field
        return Form(
            field.times(x.at, y.at),
            mean=field.add(m for m in (x.mean, y.mean) if m) if x.mean or y.mean else None,
            scale=field.times(x.scale or field.one, y.scale or field.one) if x.scale or y.scale else None,
            sign=min(x.sign, y.sign) or int(x.at == y.at),
            zeroed=x.zeroed or y.zeroed,
        )

    def scaled(self, form: Form, by: Numbers) -> Form:
        return form if form.loose else replace(form, at=self.field.times(form.at, by), sign=0, power=None)

    def negated(self, form: Form) -> Form:
        return self.scaled(form, self.minus)

    def exponential(self, form: Form) -> Form:
        return form.power or Form(self.field.power(form.at), mean=form.at, scale=self.field.one, sign=2)

    def logarithm(self, form: Form) -> Form:
        mean = form.mean or self.field.zero
        rest = self.field.times(form.at, self._without(mean))
        return Form(self.field.add((mean, self.field.hashed("log", rest[0]))), power=form if form.sign else None)

    def inverse(self, form: Form) -> Form:
        field = self.field
        scale = form.scale if form.scale and all(form.scale) else field.one
        back = field.inverse(scale)
        rest, mean = field.times(form.at, back), None
        if form.mean is not None:
            mean, power = field.less(field.zero, form.mean), self._without(form.mean)
            rest, back = field.times(rest, power), field.times(back, power)
        exact = rest == field.one or (form.sign == 2 and self.divides)
        inverse = field.inverse(rest) if exact else field.hashed("inverse", rest[0])
        return Form(field.times(inverse, back), mean=mean, scale=field.inverse(scale), sign=form.sign)

    def _without(self, mean: Numbers) -> Numbers:
        """Return exp(-mean)."""
        return self.field.power(self.field.less(self.field.zero, mean))
