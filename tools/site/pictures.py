#!/usr/bin/env python3
"""Writes the pictures of the pages: pictures.py layers OUT | pictures.py transcript OUT COMMAND...

`layers` draws the layers of src/layers, from the ground up: an arrow leads to a layer that the upper one may include, unless a longer way leads there, too (Graphviz's dot lays them
out). `transcript` runs a command and writes what it prints as a picture of a terminal. The pictures are in the tree; tests compare the first with src/layers, and the second with what
the command prints."""
import html
import re
import subprocess
import sys
import textwrap

FONT = 'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13"'
LINE_HEIGHT, COLUMN_WIDTH, MARGIN, COLUMNS = 18, 7.9, 14, 110


def read_layers(path):
    """The layers that each layer may include, from the ground up; the folders within layers are left out."""
    layers = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            found = re.match(r"(\w+)\*?:(.*)", line)
            if found:
                layers[found[1]] = found[2].split()
    return layers


def reduced(layers):
    """The pairs of layers that no way over another layer connects."""
    below = {}
    for name, others in layers.items():  # those below come first
        below[name] = set(others).union(*(below[other] for other in others)) if others else set()
    return {(name, other) for name, others in layers.items() for other in others if not any(other in below[between] for between in others)}


def draw_layers(layers):
    lines = ["digraph layers {", 'rankdir="TB"; nodesep=0.25; ranksep=0.35;',
             'node [shape=box, style="rounded,filled", fillcolor="#eef1fb", color="#3f51b5", fontname="Helvetica", fontsize=13];', 'edge [color="#7986cb", arrowsize=0.6];']
    lines += [f'"{name}";' for name in layers]
    lines += [f'"{name}" -> "{other}";' for name, other in sorted(reduced(layers))]
    drawn = subprocess.run(["dot", "-Tsvg"], input="\n".join([*lines, "}"]), capture_output=True, text=True, check=True).stdout
    return re.sub(r"<!--.*?-->\n?", "", drawn, flags=re.DOTALL)  # the comments have the version of dot


def wrapped(line):
    """The lines that a long one needs, all but the first further to the right."""
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(line, COLUMNS, subsequent_indent=indent + "    ", drop_whitespace=True, break_long_words=False) if len(line) > COLUMNS else [line]


def draw_transcript(command, text):
    lines = [part for line in [f"$ {command}", *text.rstrip("\n").split("\n")] for part in wrapped(line)]
    width = MARGIN * 2 + COLUMN_WIDTH * max(map(len, lines))
    height = MARGIN * 2 + LINE_HEIGHT * len(lines)
    rows = [f'<text x="{MARGIN}" y="{MARGIN + LINE_HEIGHT * number - 4}" fill="{"#9fa8da" if line.lstrip().startswith("$ ") else "#e8eaf6"}" xml:space="preserve">{html.escape(line)}</text>'
            for number, line in enumerate(lines, 1)]
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}" {FONT}>',
                      '<rect width="100%" height="100%" rx="8" fill="#1a1c2c"/>', *rows, "</svg>", ""])


def lines_of(picture):
    return [html.unescape(line) for line in re.findall(r"<text [^>]*>(.*?)</text>", picture)]


def arrows(picture):
    """The pairs that the picture of the layers connects, and the layers in it."""
    titles = [html.unescape(title) for title in re.findall(r"<title>(.*?)</title>", picture)]
    return {tuple(title.split("->")) for title in titles if "->" in title}, {title for title in titles if "->" not in title and title != "layers"}


def main():
    kind, out = sys.argv[1:3]
    if kind == "layers":
        picture = draw_layers(read_layers("src/layers"))
    else:
        command = sys.argv[3:]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        picture = draw_transcript(" ".join([command[0].rpartition("/")[2], *command[1:]]), done.stdout)
    with open(out, "w", encoding="utf-8") as file:
        file.write(picture)


if __name__ == "__main__":
    main()
