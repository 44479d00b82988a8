#!/usr/bin/env python3
"""Makes C of the page that `softverbs draw` writes.

Usage: embed.py OUTPUT PAGE STYLE SCRIPT...

PAGE has STYLE, SCRIPT, TITLE and DATA in double brackets; the style and the scripts replace the first two, and the text around the
other two becomes three arrays (page_parts.h).
"""
import sys
from pathlib import Path


def array(name, text):
    data = text.encode()
    rows = [", ".join(f"0x{byte:02x}" if byte < 128 else f"'\\x{byte:02x}'" for byte in data[at:at + 20]) for at in range(0, len(data), 20)]
    return f"const char {name}[] = {{\n    " + ",\n    ".join(rows) + f"}};\nconst size_t {name}_length = sizeof {name};\n"


def main():
    output, *names = sys.argv[1:]
    page, style, *scripts = (Path(name).read_text(encoding="utf-8") for name in names)
    text = page.replace("[[STYLE]]", style).replace("[[SCRIPT]]", "\n".join(scripts))
    before, rest = text.split("[[TITLE]]")
    middle, after = rest.split("[[DATA]]")
    with open(output, "w", encoding="utf-8") as file:
        file.write('#include "draw/page_parts.h"\n\n')
        for name, part in (("before_title", before), ("before_data", middle), ("after_data", after)):
            file.write(array(f"page_{name}", part))


if __name__ == "__main__":
    main()
