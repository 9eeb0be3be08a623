"""The SVG of a plan: well formed, a panel for each stage, and the devices where they belong."""

import xml.etree.ElementTree as ET

import pytest

from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.drawing import plan_svg

CASES = {
    "one exchange": ((8, 8), "{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}", 2),
    "slice and exchange": (
        (8, 8, 8),
        "{devices=[1,2,1,2]<=[4] last_tile_dim_replicate}",
        "{devices=[2,1,2]<=[4]}",
        None,
    ),
    "exact exchange": ((10,), "{devices=[4]<=[4]}", "{devices=[2,2]<=[4] last_tile_dim_replicate}", None),
    "from one device": ((4, 4), "{maximal device=2}", "{devices=[4,1]<=[4]}", 2),
    "rounds": ((2048, 2048), "{devices=[2,2]<=[4]}", "{devices=[2,2]<=[2,2]T(1,0)}", 2),
    "borders slide": ((9, 8), "{devices=[2,1,2]<=[4] last_tile_dim_replicate}", "{devices=[4,1]<=[4]}", None),
    "nothing": ((4, 4), "{replicated}", "{replicated}", 1),
    "a scalar": ((), "{maximal device=1}", "{replicated}", 3),  # a tree of two rounds
}


@pytest.mark.parametrize("name", CASES)
def test_a_panel_for_each_stage(name):
    shape, source, target, stages = CASES[name]
    plan = plan_redistribution(shape, "f32", source, target, num_devices=4)
    root = ET.fromstring(plan_svg(plan))
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "source" in texts
    arrows = len(list(root.iter("{http://www.w3.org/2000/svg}path")))
    assert stages is None or arrows == stages - 1


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0), (8, 4, 0)])
def test_an_array_without_elements_has_no_cells(shape):
    whole = "1," * (len(shape) - 2)
    plan = plan_redistribution(shape, "f32", f"{{devices=[{whole}1,4]<=[4]}}", f"{{devices=[{whole}4,1]<=[4]}}")
    root = ET.fromstring(plan_svg(plan))
    assert len(list(root.iter("{http://www.w3.org/2000/svg}rect"))) == 1  # the ground
    assert "no elements" in plan_svg(plan)


def test_cells_name_their_devices():
    plan = plan_redistribution((8, 8), "f32", "{devices=[4,1]<=[4]}", "{replicated}")
    root = ET.fromstring(plan_svg(plan))
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [t for t in texts if t in ("0", "1", "2", "3")] == ["0", "1", "2", "3"]
    assert "0-3" in texts


def test_what_is_too_much_to_draw_is_said():
    plan = plan_redistribution((4096, 4096), "f32", "{devices=[64,64]<=[4096]}", "{devices=[64,64]<=[64,64]T(1,0)}")
    assert "not drawn" in plan_svg(plan)


def test_the_last_panel_is_the_target():
    """Borders that cross: slides, an exchange in rounds, slides. The last panel has two rows and three columns."""
    source, target = "{mesh['a'=2,'b'=3], [{'b'}, {'a'}]}", "{mesh['a'=2,'b'=3], [{'a'}, {'b'}]}"
    plan = plan_redistribution((1001, 3250), "f32", source, target)
    root = ET.fromstring(plan_svg(plan))
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [t for t in texts if t in set("012345")][-6:] == ["0", "1", "2", "3", "4", "5"]
    assert "collective_permute, borders slide" in texts


def test_sums_that_move_as_arrays_are_drawn_at_their_ends():
    source, target = (f"{{mesh['a'=2,'b'=3,'u'=2], [{dims}], unreduced={{'u'}}}}" for dims in ("{'b'}", "{'a'}"))
    root = ET.fromstring(plan_svg(plan_redistribution((61,), "f32", source, target)))
    assert "of each sum" in [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
