"""Sealed documents: a byte that turned, a cut, another kind or version is never believed."""

import json

import pytest

from elastream.errors import Damaged
from elastream.lanes.sealed import seal, unseal


def test_any_byte_of_a_sealed_document_may_turn_and_no_wrong_document_is_believed() -> None:
    document = {
        "tick": 12,
        "consumed": [["score", 3, 250]],
        "counts": {"score": {"processed": 250.0}},
        "plan": {"budget_s": 0.5, "outputs": []},
    }
    whole = seal("entry", document)
    # At least three figures, for then a point between them gives a number that is no count of bytes.
    assert json.loads(whole.split(b"\n")[0])["bytes"] >= 100
    surprises = []
    for at in range(len(whole)):
        for value in range(256):
            if value == whole[at]:
                continue
            turned = whole[:at] + bytes([value]) + whole[at + 1 :]
            try:
                # Another white space in the header changes nothing that is said.
                if unseal("entry", turned, "somewhere") != document:
                    surprises.append((at, value, "believed"))
            except Damaged as error:
                assert str(error).startswith("somewhere: ")
            except Exception as error:
                surprises.append((at, value, repr(error)))
    assert surprises == []


@pytest.mark.parametrize("left", range(0, 120, 7))
def test_a_sealed_document_that_was_cut_short_is_damaged(left: int) -> None:
    whole = seal("entry", {"text": "x" * 60})
    with pytest.raises(Damaged, match="somewhere"):
        unseal("entry", whole[:left], "somewhere")


def test_a_document_of_another_kind_or_version_is_told_apart() -> None:
    with pytest.raises(Damaged, match="expected an elastream-entry, got 'elastream-reader'"):
        unseal("entry", seal("reader", {}), "here")
    newer = seal("entry", {}).replace(b'"version": 1', b'"version": 9')
    with pytest.raises(Damaged, match="version 9, this Elastream reads 1; use the version that wrote it"):
        unseal("entry", newer, "here")
