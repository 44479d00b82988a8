#!/usr/bin/env python3
"""make site: every page and manual page, without a warning of mkdocs and without a link that leads nowhere."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, TEMPORARY, TREE, Skip, told

sys.path.insert(0, f"{TREE}/tools/site")
import pictures  # pylint: disable=wrong-import-position
import site_pages as site  # pylint: disable=wrong-import-position


def all_pages_are_made_without_a_warning():
    for program in ("mkdocs", "mandoc"):
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")
    out = f"{TEMPORARY}/site"
    done = subprocess.run([sys.executable, f"{TREE}/tools/site/site_pages.py", BUILD, out], capture_output=True, check=False)
    assert done.returncode == 0 and not done.stderr, told(done)
    for page, says in (("index.html", "RDMA without RDMA hardware"), ("docs/tutorial/first-program.html", "ibv_get_device_list"),
                       ("docs/reference/reasons.html", "RECEIVER_NOT_READY"), ("docs/reference/checker.html", "send-buffer-changed</h3>"),
                       ("manual/softverbs.1.html", "Run an unmodified program"), ("search/search_index.json", "ibv_reg_mr")):
        with open(f"{out}/html/{page}", encoding="utf-8") as file:
            assert says in file.read(), page
    with open(f"{out}/html/docs/how-to/install.html", encoding="utf-8") as file:
        install = file.read()
    for system in ("Debian", "Ubuntu", "Fedora, RHEL", "Alpine", "Python"):
        assert re.search(rf'<label for="__tabbed_1_\d+">{system}</label>', install), system
    assert "<!-- tabs" not in install and "```" not in install
    made = {os.path.relpath(f"{directory}/{name}", f"{out}/html") for directory, _, names in os.walk(f"{out}/html") for name in names}
    missing = {page for page in site.tracked(".md") if page != "README.md" and page.replace("README.md", "index.md")[:-2] + "html" not in made}
    assert not missing, missing


def links_that_lead_nowhere_are_found():
    top = f"{TEMPORARY}/links"
    site.write(f"{top}/a.html", '<a href="b.html#there">1</a><a href="b.html#nowhere">2</a><a href="c.html">3</a><img src="d.png"><a href="https://e.invalid/">5</a>')
    site.write(f"{top}/b.html", '<h1 id="there">b</h1><a href="#there">1</a>')
    assert list(site.broken_links(top)) == ["a.html: b.html#nowhere: there is no such heading", "a.html: c.html: there is no such file",
                                            "a.html: d.png: there is no such file"]


def lists_of_github_are_lists_of_mkdocs():
    assert site.for_mkdocs("Text:\n- one\n  more\n  - two\n- three\n\nEnd") == "Text:\n\n- one\n    more\n    - two\n- three\n\nEnd"
    assert site.for_mkdocs("```\na\n- b\n```") == "```\na\n- b\n```"


def sections_between_comments_are_tabs():
    text = "a\n\n<!-- tabs -->\n\n### One\n\n```sh\nb\n```\n\n### Two\n\nc\n\n<!-- end of tabs -->\n\n### d\n"
    assert site.with_tabs(text) == 'a\n\n\n=== "One"\n\n    ```sh\n    b\n    ```\n\n=== "Two"\n\n    c\n\n\n### d\n'


def the_picture_of_the_layers_is_that_of_the_build():
    layers = pictures.read_layers(f"{TREE}/src/layers")
    with open(f"{TREE}/docs/explanation/layers.svg", encoding="utf-8") as file:
        found = pictures.arrows(file.read())
    assert found == (pictures.reduced(layers), set(layers)), "tools/site/pictures.py layers docs/explanation/layers.svg makes it anew"
    assert pictures.reduced({"a": [], "b": ["a"], "c": ["a", "b"]}) == {("b", "a"), ("c", "b")}


def _fixed(lines):
    """Lines with numbers vary from run to run, and so does where long ones are broken."""
    return {line.strip() for line in lines if len(line) <= pictures.COLUMNS and not re.search(r"\d|You are", line)}


def pictures_of_the_demonstration_show_what_it_prints():
    """The README's has no line more, either."""
    if not shutil.which("ibv_rc_pingpong"):
        raise Skip("ibv_rc_pingpong is not installed")
    for name, command, least in (("demo", ["demo"], 5), ("tour", ["demo", "--all"], 10)):
        printed = _fixed(cases.expect(cases.softverbs(*command)).stdout.decode().splitlines())
        with open(f"{TREE}/docs/explanation/{name}.svg", encoding="utf-8") as file:
            shown = _fixed(pictures.lines_of(file.read()))
        assert len(printed) > least and not printed - shown, printed - shown
        assert name != "demo" or not shown - printed - {"$ softverbs demo"}, shown - printed


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
