"""A differential flame graph as one file: an SVG with a tooltip on every frame, or the same in a page that zooms.

Nothing is loaded from elsewhere. The width of a frame is its mean time on both sides, so that what one side
alone has is there too; red is where head spends more, blue where it spends less, grey where they do not differ
by more than the repetitions do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from bench.metrics import TIME
from bench.profiles import Node, ProfileDifference
from bench.reports.format import digits, quantity, side

WIDTH = 1200.0
ROW = 18.0
TOP = 44.0
LETTER = 6.6
"""Width of a letter of the labels, in pixels."""

NARROWEST = 0.3
"""Pixels under which a frame is not drawn."""

STRONGEST = 0.1
"""Share of base's call from which a difference has the full colour."""


@dataclass(frozen=True, slots=True)
class _Box:
    node: Node
    x: float
    width: float
    depth: int


def flame_svg(found: ProfileDifference) -> str:
    """The graph by itself."""
    boxes = list(_boxes(found.tree, 0.0, WIDTH, 0))
    height = TOP + ROW * (1 + max(box.depth for box in boxes)) + 8
    title = f"{found.variant}: {side(found.base)} → {side(found.head)}, {found.engine}"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img" '
        f'font-family="monospace" font-size="11"><title>{escape(title)}</title>'
        f'<rect width="{WIDTH:.0f}" height="{height:.0f}" fill="#ffffff"/>'
        f'<text x="8" y="16" font-size="13">{escape(title)}</text>'
        '<text x="8" y="33" fill="#555">red ▲: head spends more; blue ▼: less; grey: no difference beyond noise</text>'
    )
    return head + "".join(_draw(box, found) for box in boxes) + "</svg>\n"


def flame_page(found: ProfileDifference) -> str:
    """The graph in a page: a click makes a frame as wide as the page, a click on the lowest row goes back."""
    title = escape(f"{found.variant}: {side(found.base)} → {side(found.head)}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        "<style>body{margin:8px;font-family:sans-serif}svg{width:100%}g{cursor:pointer}"
        "g:hover rect{stroke:#000}</style>"
        f"{flame_svg(found)}<script>{SCRIPT}</script></html>\n"
    )


SCRIPT = """
const W=@WIDTH,L=@LETTER,all=[...document.querySelectorAll("g[data-x]")];
function zoom(g){const x=+g.dataset.x,w=+g.dataset.w,d=+g.dataset.d;
for(const o of all){const ox=+o.dataset.x,ow=+o.dataset.w,inside=ox>=x-1e-6&&ox+ow<=x+w+1e-6,
above=+o.dataset.d<d&&ox<=x+1e-6&&ox+ow>=x+w-1e-6;
o.style.display=inside||above?"":"none";if(!(inside||above))continue;
const nx=above?0:(ox-x)*W/w,nw=above?W:ow*W/w,r=o.querySelector("rect"),t=o.querySelector("text");
r.setAttribute("x",nx);r.setAttribute("width",Math.max(nw-.5,.1));
if(t){t.setAttribute("x",nx+3);const n=Math.floor((nw-6)/L);
t.textContent=n<2?"":o.dataset.n.length<=n?o.dataset.n:o.dataset.n.slice(0,n-1)+"…";}}}
for(const g of all)g.addEventListener("click",()=>zoom(g));
""".replace("@WIDTH", str(WIDTH)).replace("@LETTER", str(LETTER))


def _weight(node: Node) -> float:
    return (node.base_ns + node.head_ns) / 2


def _boxes(node: Node, x: float, width: float, depth: int) -> Iterator[_Box]:
    yield _Box(node, x, width, depth)
    whole = _weight(node)
    for child in node.children:
        part = width * _weight(child) / whole if whole else 0.0
        if part >= NARROWEST:
            yield from _boxes(child, x, part, depth + 1)
        x += part


def _draw(box: _Box, found: ProfileDifference) -> str:
    node, y = box.node, TOP + ROW * box.depth
    letters = int((box.width - 6) / LETTER)
    label = node.name if len(node.name) <= letters else node.name[: letters - 1] + "…" if letters >= 2 else ""
    return (
        f'<g data-x="{box.x:.3f}" data-w="{box.width:.3f}" data-d="{box.depth}" data-n="{escape(node.name)}">'
        f"<title>{escape(_told(node, found))}</title>"
        f'<rect x="{box.x:.2f}" y="{y:.1f}" width="{max(box.width - 0.5, 0.1):.2f}" height="{ROW - 1:.0f}" '
        f'fill="{_colour(node, found.base_ns)}"/>'
        f'<text x="{box.x + 3:.2f}" y="{y + 12.5:.1f}">{escape(label)}</text></g>'
    )


def _told(node: Node, found: ProfileDifference) -> str:
    change = node.head_ns - node.base_ns
    mark = ("▲ " if change > 0 else "▼ ") if node.differs else ""
    noise = "too few repetitions for an interval" if node.noise_ns is None else f"± {_time(node.noise_ns)}"
    sign = "+" if change >= 0 else "−"
    share = digits(abs(change) / found.base_ns * 100)
    return (
        f"{mark}{node.name}\n{_time(node.base_ns)} → {_time(node.head_ns)} a call\n"
        f"{sign}{_time(abs(change))} ({noise}), {sign}{share} % of base's call"
    )


def _time(ns: float) -> str:
    return quantity(ns, TIME)


def _colour(node: Node, whole: float) -> str:
    if not node.differs or not whole:
        return "#d9d9d9"
    change = (node.head_ns - node.base_ns) / whole
    pale = round(225 - 165 * min(1.0, abs(change) / STRONGEST))
    return f"#ff{pale:02x}{pale:02x}" if change > 0 else f"#{pale:02x}{round(pale * 0.9 + 25):02x}ff"
