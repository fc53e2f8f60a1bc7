#!/usr/bin/env python3
"""Draws a result of a benchmark as an SVG beside it; needs matplotlib.

    python3 bench/plot.py bench/results/<...>-attention.json...

The benchmarks call it at their end where matplotlib can be imported; elsewhere draw the JSON later.
"""

import json
import os
import re
import sys

# Colours stay with the contestant in all panels; ours come from the first ones, in order.
OURS = ("#c1272d", "#f08a3c", "#7b3294", "#e377c2", "#8c564b")
PEERS = {
    "fa3": "#1f77b4",
    "fa3_det": "#9ecae1",
    "cudnn": "#2ca02c",
    "fa2": "#7f7f7f",
    "flex": "#17becf",
    "triton": "#bcbd22",
    "cublas": "#2ca02c",
}
COLUMNS = 2


def own_name(record):
    return "tessera" if record["variant"] in ("default", "") else f"tessera, {record['variant']}"


def own_rate(record):
    return record.get("timings", {}).get("tessera", {}).get("tflops")


def rates_of_peers(record):
    return {name: timing["tflops"] for name, timing in record.get("timings", {}).items() if name != "tessera"}


def of_attention(records):
    """A panel for each group, head dimension and mask."""
    for record in records:
        dims = f"{record['d']}" if record.get("dv", record["d"]) == record["d"] else f"{record['d']}/{record['dv']}"
        group = record.get("group", "paper")
        suffix = "" if group in ("paper", "dims") else f", {group}"
        values = {own_name(record): own_rate(record), **rates_of_peers(record)}
        yield f"d = {dims}, {record['mask']}{suffix}", str(record["seqlen"]), values


def of_ablation(records):
    """One panel with a bar for each variant and peer."""
    for record in records:
        yield "Parts of the schedule switched off", record["variant"], {"tessera": own_rate(record)}
    timed = next((record for record in records if record.get("timings")), {})
    for name, rate in rates_of_peers(timed).items():
        yield "Parts of the schedule switched off", name, {name: rate}


def of_backward_ablation(records):
    """A panel for each head dimension, mask and length, with a bar for each variant and peer."""
    for record in records:
        title = f"d = {record['d']}, {record['mask']}, {record['seqlen']} tokens"
        yield title, record["variant"], {"tessera": own_rate(record)}
        if record["variant"] == "default":
            for name, rate in rates_of_peers(record).items():
                yield title, name, {name: rate}


def of_gemm(records):
    for record in records:
        values = {own_name(record): own_rate(record), **rates_of_peers(record)}
        yield f"B as {record['b']}", f"{record['m']}x{record['n']}x{record['k']}", values


def of_variants(records):
    for record in records:
        values = {who: record[who]["tflops"] for who in ("tessera", "flex") if who in record}
        yield f"d = {record['d']}, {record['seqlen']} tokens", record["variant"], values


def of_host(records):
    for record in records:
        yield "Host time of a launch", record["kernel"], {record["through"]: record["microseconds"]}


# {benchmark: (what yields (panel, label, {contestant: value}) of records, the unit of the values, drawn as lines)}
KINDS = {
    "attention": (of_attention, "TFLOP/s", True),
    "backward": (of_attention, "TFLOP/s", True),
    "fp8": (of_attention, "TFLOP/s", True),
    "ablation": (of_ablation, "TFLOP/s", False),
    "ablation-backward": (of_backward_ablation, "TFLOP/s", False),
    "gemm": (of_gemm, "TFLOP/s", False),
    "variants": (of_variants, "TFLOP/s", False),
    "host": (of_host, "microseconds", False),
}


def kind_of(result, path):
    """The benchmark's name; of results that do not say it, by the name of the file. Counts of instructions, a list, are no
    results of a benchmark."""
    if not isinstance(result, dict):
        return ""
    match = re.search(r"-([a-z]+)\.json$", path)
    return result.get("benchmark") or (match.group(1) if match else "")


def find_number(title):
    """The first number of a title, its head dimension."""
    return int(re.search(r"\d+", title).group())


def panels(result, kind):
    """{panel: {"labels": [...], "values": {contestant: [value or None for each label]}}}, in the order of records; lines in that
    of their numbers, as a run may measure its most important points first."""
    of_records, _, lines = KINDS[kind]
    points = list(of_records(result["results"]))
    if lines:
        points.sort(key=lambda point: (find_number(point[0]), int(point[1])))
    found = {}
    for title, label, _ in points:
        labels = found.setdefault(title, {"labels": [], "values": {}})["labels"]
        if label not in labels:
            labels.append(label)
    for title, label, values in points:
        panel = found[title]
        for name, value in values.items():
            series = panel["values"].setdefault(name, [None] * len(panel["labels"]))
            series[panel["labels"].index(label)] = value
    return found


def colours(found):
    """{contestant: colour} of all panels."""
    names = list(dict.fromkeys(name for panel in found.values() for name in panel["values"]))
    own = [name for name in names if name not in PEERS]
    return {**PEERS, **{name: OURS[index % len(OURS)] for index, name in enumerate(own)}}


def draw_lines(axes, panel, colour_of):
    for name, values in panel["values"].items():
        shown = [(place, value) for place, value in enumerate(values) if value is not None]
        if shown:
            axes.plot(*zip(*shown), "o-", color=colour_of[name], label=name, linewidth=1.5, markersize=4)
    axes.set_xticks(range(len(panel["labels"])), panel["labels"], fontsize=8)
    axes.set_ylim(0)
    axes.grid(True, axis="y", alpha=0.3)


def draw_bars(axes, panel, colour_of):
    """Each label's bars share its place, those that are there."""
    for place in range(len(panel["labels"])):
        shown = [(name, values[place]) for name, values in panel["values"].items() if values[place] is not None]
        for number, (name, value) in enumerate(shown):
            width = 0.8 / len(shown)
            axes.barh(place - 0.4 + (number + 0.5) * width, value, width, color=colour_of[name], label=name)
    axes.set_yticks(range(len(panel["labels"])), panel["labels"], fontsize=8)
    axes.set_xlim(0)
    axes.invert_yaxis()
    axes.grid(True, axis="x", alpha=0.3)


def draw_figure(pyplot, result, kind, path):
    """Writes an SVG; False when no panel has a value."""
    _, unit, lines = KINDS[kind]
    found = panels(result, kind)
    if not any(
        value is not None for panel in found.values() for values in panel["values"].values() for value in values
    ):
        return False
    columns = min(COLUMNS, len(found))
    rows = -(-len(found) // columns)
    height = 2.8 if lines else 1.2 + 0.3 * max(len(panel["labels"]) for panel in found.values())
    figure, grid = pyplot.subplots(rows, columns, figsize=(5.5 * columns, height * rows + 0.8), squeeze=False)
    colour_of, handles = colours(found), {}
    for axes, (title, panel) in zip(grid.flat, found.items()):
        (draw_lines if lines else draw_bars)(axes, panel, colour_of)
        (axes.set_ylabel if lines else axes.set_xlabel)(unit, fontsize=8)
        axes.set_title(title, fontsize=10)
        handles.update((label, handle) for handle, label in zip(*axes.get_legend_handles_labels()))
    for axes in list(grid.flat)[len(found) :]:
        axes.axis("off")
    machine = result.get("gpu") or result.get("cpu", "")
    figure.suptitle(f"{kind}, {machine}, {result['date']}, commit {result['commit']}", fontsize=11)
    figure.tight_layout(rect=(0, 0.5 / figure.get_figheight(), 1, 1))
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=4, fontsize=8, frameon=False)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return True


def draw(path):
    """Draws the result in a file; returns a line that says what became of it."""
    with open(path) as file:
        result = json.load(file)
    kind, target = kind_of(result, path), os.path.splitext(path)[0] + ".svg"
    if kind not in KINDS:
        return f"no plot: of a result of '{kind}' there is none"
    try:
        import matplotlib
    except ImportError:
        return f"no plot: matplotlib cannot be imported; draw it elsewhere with bench/plot.py {path}"
    matplotlib.use("Agg")
    # Text as text, and the same file for the same result.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "tessera", "font.family": "sans-serif"})
    from matplotlib import pyplot

    return f"wrote {target}" if draw_figure(pyplot, result, kind, target) else "no plot: nothing was timed"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for path in sys.argv[1:]:
        print(draw(path))


if __name__ == "__main__":
    main()
