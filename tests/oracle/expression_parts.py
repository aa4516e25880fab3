"""The parts of an expression that the oracle scores by themselves: what is kept, taken away, excluded, required."""


def alternatives(expression):
    """The alternatives of an OR, or the one expression."""
    if expression[0] != "or":
        return [expression]
    return [part for operand in expression[1:] for part in alternatives(operand)]


def gather(expression):
    """The parts that are kept, that NOT takes away, that NOT! excludes, and the operands of each AND!."""
    if isinstance(expression, str) or expression[0] == "or":
        return [expression], [], [], []
    kind, first, *others = expression
    parts = gather(first)
    if kind in ("not", "not!"):
        parts[1 if kind == "not" else 2].extend(alternatives(others[0]))
        return parts
    for other in map(gather, others):
        for mine, more in zip(parts, other, strict=True):
            mine.extend(more)
    parts[0][:] = dict.fromkeys(parts[0])
    if kind == "and!":
        parts[3].append(expression[1:])
    return parts


def kept(expression):
    """An expression without what any NOT or NOT! takes away or excludes."""
    if isinstance(expression, str):
        return expression
    kind, *operands = expression
    return kept(operands[0]) if kind in ("not", "not!") else (kind, *map(kept, operands))


def names(expression):
    """The atoms of an expression that has no NOT."""
    return {expression} if isinstance(expression, str) else set().union(*map(names, expression[1:]))
