"""Which documents a filter allows, one value after another; Java decides by its own index of values."""

import re
from collections.abc import Collection, Iterable, Mapping

from pyserini_compneg.expression import Filter
from pyserini_compneg.expression.dates import period
from pyserini_compneg.expression.filters import _NUMBER, ID, _date_ends, _number_ends, _text


def allows(asked: Filter, values: Mapping[str, Collection]) -> bool:
    """Whether a document with these values of its fields matches."""
    return all(
        any(_is_wanted(wanted, value, name == ID) for value in values.get(name, ()))
        for name, wanted in asked.fields.items()
    )


def _is_wanted(wanted: Iterable[str], value: object, is_id: bool) -> bool:
    """Whether a value is one of the wanted values. A range is never a text of that name."""
    text, date = _text(value), None if isinstance(value, bool) else period(_text(value))
    number = None if isinstance(value, (bool, str)) or is_id else float(value)
    for one in wanted:
        numbers, dates = (None, None) if is_id else (_number_ends(one), _date_ends(one))
        is_value = numbers is None and dates is None
        if is_value and (text == one or (number is not None and re.fullmatch(_NUMBER, one) and number == float(one))):
            return True
        for place, ends in ((number, numbers), (date and date.first, dates)):
            if place is not None and ends is not None and ends[0] <= place <= ends[1]:
                return True
    return False
