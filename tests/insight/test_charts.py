"""Charts as SVG."""

from xml.etree import ElementTree

from engine.insight.charts import interval_chart, line_chart


def test_charts_draw_what_there_is():
    assert line_chart("t", {"a": [], "b": []}, "x") == "" and interval_chart("t", [], "x") == ""
    drawn = line_chart("a < b", {"one": [(i, float(i * i)) for i in range(1000)], "flat": [(0, 2.0)]}, "step")
    assert drawn.count("<polyline") == 2 and "a &lt; b" in drawn
    for chart in (drawn, interval_chart("t", [("p", 10.0, -5.0, 20.0)], "Elo")):
        root = ElementTree.fromstring(chart)
        assert all(
            0 <= float(value) <= 460
            for item in root
            for name, value in item.attrib.items()
            if name in ("x", "x1", "cx")
        )
