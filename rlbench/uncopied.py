"""What is known by the address of its memory, of which a copy would lose track silently."""

from __future__ import annotations

from typing import NoReturn


class Uncopied:
    """A base of what must be neither copied nor pickled.

    A copied network has memory of its own, but what was copied along would go on working on the memory of the first, or on a
    copy that no network sees: a training that learns nothing, and says nothing.
    """

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} cannot be copied or pickled, and neither can a trainer that has one: it works on memory "
            "by address. Make a new trainer with the same settings and load the weights in place: "
            "new.online.load_state_dict(old.online.state_dict()), and target likewise."
        )
