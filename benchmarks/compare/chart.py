"""Time against bytes as SVG: a row of panels per collective, one panel per
number of ranks, both axes logarithmic."""

import math
from xml.sax.saxutils import escape

from results import TITLES, lines_of, size_name

WIDTH, HEIGHT = 440, 320  # of a panel's plot area, in pixels
LEFT, TOP, GAP, BOTTOM = 84, 84, 84, 76
COLOURS = {"ours": "#d62728", "ours-shared": "#ff9896",
           "libgloo default": "#1f77b4", "libgloo busy": "#6baed6", "openmpi": "#2ca02c",
           "mpich": "#9467bd", "limit": "#777777"}
MARKERS = {"ours": "circle", "ours-shared": "square",
           "libgloo default": "square", "libgloo busy": "diamond", "openmpi": "up", "mpich": "down",
           "limit": "circle"}


class Scale:
    """Maps a logarithmic range to pixels."""

    def __init__(self, low, high, first, last):
        self._low = math.log(low)
        self._span = max(math.log(high) - self._low, 1e-9)
        self._first, self._last = first, last

    def __call__(self, value):
        part = (math.log(value) - self._low) / self._span
        return self._first + part * (self._last - self._first)


def _text(x, y, content, anchor="middle", size=12, extra=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
            f'text-anchor="{anchor}" {extra}>{escape(content)}</text>')


def _line(x1, y1, x2, y2, colour="#dddddd"):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}"/>')


def _marker(shape, x, y, colour):
    r = 4.5
    points = {"square": [(-r, -r), (r, -r), (r, r), (-r, r)],
              "diamond": [(0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)],
              "up": [(0, -r - 1), (r, r), (-r, r)],
              "down": [(0, r + 1), (r, -r), (-r, -r)]}
    if shape not in points:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="{colour}"/>'
    corners = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in points[shape])
    return f'<polygon points="{corners}" fill="{colour}"/>'


def _curve(label, line, x_of, y_of):
    colour = COLOURS[label]
    dash = ' stroke-dasharray="5 4"' if label == "limit" else ""
    width = 3 if label == "ours" else 1.8
    points = [(x_of(size), y_of(time)) for size, time in sorted(line.items())]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" '
            f'stroke-width="{width}"{dash}/>',
            *(_marker(MARKERS[label], x, y, colour) for x, y in points)]


def _time_name(us):
    if us >= 1e6:
        return f"{us / 1e6:g} s"
    return f"{us / 1e3:g} ms" if us >= 1e3 else f"{us:g} µs"


def _axes(sizes, times, x_of, y_of, left, top):
    parts = []
    for power in range(round(math.log10(times[0])),
                       round(math.log10(times[1])) + 1):
        y = y_of(10.0 ** power)
        parts.append(_line(left, y, left + WIDTH, y))
        parts.append(_text(left - 8, y + 4, _time_name(10.0 ** power), "end"))
    last = -1e9
    for size in sizes:
        x = x_of(size)
        parts.append(_line(x, top, x, top + HEIGHT))
        if x - last >= 34:  # names that would overlap are left out
            parts.append(_text(x, top + HEIGHT + 18, size_name(size), size=10))
            last = x
    parts.append(f'<rect x="{left}" y="{top}" width="{WIDTH}" '
                 f'height="{HEIGHT}" fill="none" stroke="#444444"/>')
    parts.append(_text(left + WIDTH / 2, top + HEIGHT + 42,
                       "bytes of the vector"))
    middle = top + HEIGHT / 2
    parts.append(_text(left - 62, middle, "time of one operation (p50)",
                       extra=f'transform="rotate(-90 {left - 62} {middle})"'))
    return parts


def _panel(lines, title, left, top, times):
    sizes = sorted({size for line in lines.values() for size in line})
    x_of = Scale(max(sizes[0], 1) / 1.6, max(sizes[-1], 1) * 1.6,
                 left, left + WIDTH)
    y_of = Scale(times[0], times[1], top + HEIGHT, top)
    parts = [_text(left + WIDTH / 2, top - 10, title, size=14)]
    parts += _axes([max(size, 1) for size in sizes], times, x_of, y_of, left,
                   top)
    # Ours last, so that it lies on top.
    for label in sorted(lines, key=lambda label: label == "ours"):
        line = {max(size, 1): time for size, time in lines[label].items()}
        parts += _curve(label, line, x_of, y_of)
    return parts


def _legend(labels, y):
    parts, x = [], LEFT
    for label in labels:
        parts.append(_line(x, y - 4, x + 26, y - 4, COLOURS[label]))
        parts.append(_marker(MARKERS[label], x + 13, y - 4, COLOURS[label]))
        parts.append(_text(x + 33, y, TITLES[label], "start", 13))
        x += 33 + 8 * len(TITLES[label]) + 26
    return parts


def draw(panels, title):
    """panels: {(collective, transport): {ranks: rows}}. Returns SVG text."""
    columns = max(len(row) for row in panels.values())
    width = LEFT + columns * (WIDTH + GAP)
    height = TOP + len(panels) * (HEIGHT + BOTTOM)
    parts = [_text(LEFT, 28, title, "start", 17, 'font-weight="bold"')]
    labels = {}
    for row, ((collective, transport), by_ranks) in enumerate(panels.items()):
        drawn = {ranks: lines_of(rows) for ranks, rows in by_ranks.items()}
        every = [time for lines in drawn.values() for line in lines.values()
                 for time in line.values()]
        times = (10.0 ** math.floor(math.log10(min(every))),
                 10.0 ** math.ceil(math.log10(max(every))))
        for column, (ranks, lines) in enumerate(drawn.items()):
            labels.update(dict.fromkeys(lines))
            parts += _panel(lines, f"{collective}, {ranks} ranks, {transport}",
                            LEFT + column * (WIDTH + GAP),
                            TOP + row * (HEIGHT + BOTTOM), times)
    parts += _legend([label for label in TITLES if label in labels], 54)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
            f'height="{height}" font-family="sans-serif">'
            f'<rect width="100%" height="100%" fill="white"/>'
            + "\n".join(parts) + "</svg>\n")
