"""The picture of a topology, in text and for notebooks."""

import xml.etree.ElementTree as ET

from topologies import diamond, keep_nothing, unchanged, words

from elastream import Topology, groupings


def test_a_printed_topology_shows_operators_replicas_and_groupings() -> None:
    topology = (
        Topology("tweets")
        .source("read", words())
        .map("score", unchanged, replicas=(1, 8), start=2, grouping=groupings.fields("id", "word"))
        .map("trim", unchanged, chain=True)
        .sink("store", keep_nothing, replicas=3)
        .topology
    )
    assert str(topology).splitlines() == [
        "tweets",
        "  read x 1              source",
        "  └─ score x 2 of 1..8  map; fields(id, word) of read",
        "     └─ trim            map, chained",
        "        └─ store x 3    sink; shuffle of trim",
    ]


def test_a_drawing_names_every_predecessor_with_its_grouping() -> None:
    (line,) = [line for line in str(diamond()).splitlines() if "join" in line.split("  map")[0]]
    assert "all of left" in line
    assert "local of right" in line


def _texts(html: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(html).iter("{http://www.w3.org/2000/svg}text")]


def test_the_picture_for_notebooks_is_well_formed_and_shows_everything() -> None:
    graph = diamond()
    svg = ET.fromstring(graph._repr_html_())
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(svg.iter("{http://www.w3.org/2000/svg}rect"))) == len(graph.operators)
    assert len(list(svg.iter("{http://www.w3.org/2000/svg}line"))) == len(graph.edges)
    texts = _texts(graph._repr_html_())
    assert {operator.name for operator in graph.operators} <= set(texts)
    assert {"map x 2 of 1..4", "filter x 3", "partial_key(id, n)", "fields(id)", "global"} <= set(texts)


def test_names_that_look_like_markup_do_not_break_the_picture() -> None:
    name = "<b>&\"'é</b>".replace("/", "|")
    topology = Topology("<t>").source(name, words()).sink("a & b", keep_nothing).topology
    assert {name, "a & b"} <= set(_texts(topology._repr_html_()))


def test_no_two_boxes_of_a_picture_lie_on_each_other() -> None:
    boxes = [
        (int(rect.attrib["x"]), int(rect.attrib["y"]))
        for rect in ET.fromstring(diamond()._repr_html_()).iter("{http://www.w3.org/2000/svg}rect")
    ]
    assert len(set(boxes)) == len(boxes)
