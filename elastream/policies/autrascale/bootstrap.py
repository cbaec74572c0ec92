"""The first samples of a benefit model (section III-D): all operators alike, then each alone at its most."""

from elastream.policies.autrascale.models import Sizes


def bootstrap_sizes(base: Sizes, most: Sizes, alike: int) -> tuple[Sizes, ...]:
    """Configurations between the base and the most that is allowed, each once, in the order of the paper.

    First `alike` of them (M) with the same size for every operator, from the largest of the base to the largest allowed in
    even steps. Then one per operator, which has its most while all others have their base.
    """
    first, last = max(base), max(most)
    uniform = [round(first + (last - first) * number / (alike - 1)) for number in range(alike)]
    made = [tuple(min(max(size, least), top) for least, top in zip(base, most, strict=True)) for size in uniform]
    for place, top in enumerate(most):
        made.append((*base[:place], top, *base[place + 1 :]))
    return tuple(dict.fromkeys(made))
