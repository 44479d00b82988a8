#!/usr/bin/env python3
"""packaging/recipes: each recipe is one of its format, names what softverbs needs, and has build commands that this tree understands.

The commands run with a `meson` that sets up nothing, except once: the options of each are compared with those of this build, and `install` installs this build.
nix-instantiate, ruby and makepkg read the recipes of their formats where they are installed."""
import ast
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
import installation
from cases import BUILD, TEMPORARY, TREE, Skip, softverbs, told

try:
    import yaml
except ImportError:
    yaml = None

VERSION = softverbs("version").stdout.split()[1].decode().rstrip(",")
URL = f"https://example.org/v{VERSION}/softverbs-{VERSION}.tar.xz"
FILES = {"conda-forge": "recipe.yaml", "nix": "package.nix", "homebrew": "softverbs.rb", "spack": "package.py", "arch": "PKGBUILD", "alpine": "APKBUILD"}


def _recipes():
    """The directory of the recipes for an archive, and its checksum."""
    place, archive = f"{TEMPORARY}/recipes", f"{TEMPORARY}/softverbs-{VERSION}.tar.xz"
    with open(archive, "wb") as file:
        file.write(b"the sources")
    if not os.path.isdir(place):
        subprocess.run([f"{TREE}/packaging/dist/recipes.py", VERSION, archive, URL, place], check=True)
    return place, hashlib.sha256(b"the sources").hexdigest()


def _text(name):
    with open(f"{_recipes()[0]}/{name}/{FILES[name]}", encoding="utf-8") as file:
        return file.read()


def each_recipe_has_version_address_checksum_license_and_needs():
    place, digest = _recipes()
    assert sorted(os.listdir(place)) == sorted(FILES), os.listdir(place)
    for name in FILES:
        text = _text(name)
        assert not re.search(r"@[A-Z]\w+@", text) and VERSION in text and URL in text, name
        assert digest in text or name == "alpine" and "sha512sums" in text, name
        assert re.search(r"BSD-2-Clause|licenses\.bsd2", text), name
        for need in ("jansson", "libdeflate", "rdma-core", "meson", "python"):
            assert need in text, (name, need)
        assert "-Dtests=false" in text, name


def _tools(directory):
    """A directory for $PATH in which meson and its wrappers write down what they are asked for."""
    os.makedirs(f"{directory}/bin")
    script = f"""#!/bin/sh
word=$(basename "$0")
[ "$word" != meson ] || {{ word=$1; shift; }}
echo "$word $*" >>{directory}/asked
case $word in
install) DESTDIR=${{DESTDIR:-$PREFIX}}
    while [ $# -gt 0 ]; do [ "$1" != --destdir ] || DESTDIR=$2; shift; done
    export DESTDIR; exec {shutil.which("meson")} install --no-rebuild --quiet -C {BUILD} >/dev/null ;;
esac
"""
    for name in ("meson", "arch-meson", "abuild-meson"):
        with open(f"{directory}/bin/{name}", "w", encoding="utf-8") as file:
            file.write(script)
        os.chmod(f"{directory}/bin/{name}", 0o755)
    return f"{directory}/bin:{os.environ['PATH']}"


def _known_options():
    with open(f"{BUILD}/meson-info/intro-buildoptions.json", encoding="utf-8") as file:
        return {option["name"]: option for option in json.load(file)}


def _builds(name, commands, shell="bash"):
    """Runs the commands of a recipe in a tree that is unpacked as its source, and looks at what they asked meson for and installed."""
    directory = f"{TEMPORARY}/{name}-build"
    path = _tools(directory)
    os.makedirs(f"{directory}/package")
    os.symlink(TREE, f"{directory}/softverbs-{VERSION}")
    with installation.alone(BUILD):
        done = subprocess.run([shell, "-euc", commands], cwd=directory, capture_output=True, check=False, env={
            **os.environ, "PATH": path, "srcdir": directory, "pkgdir": f"{directory}/package", "PREFIX": f"{directory}/package"})
    assert done.returncode == 0, told(done)
    with open(f"{directory}/asked", encoding="utf-8") as file:
        asked = file.read()
    words = [line.split()[0] for line in asked.splitlines()]
    assert words[0].endswith(("setup", "-meson")) and words[1:3] == ["compile", "install"] and "-C" in asked, asked
    _understood(asked)
    installed = glob.glob(f"{directory}/package/**/bin/softverbs", recursive=True)
    assert installed, asked
    return directory


def _understood(asked):
    """Each option is one of this tree."""
    known = _known_options()
    for option, value in re.findall(r"-D(\w+)=(\S+)", asked):
        assert option in known and value in known[option].get("choices", (value,)), (option, value)
    assert "-Dtests=false" in asked, asked


def the_recipe_of_arch_is_one():
    text, home = _text("arch"), f"{TEMPORARY}/makepkg"
    fields = subprocess.run(["bash", "-euc", f"{text}\necho $pkgname $pkgver $pkgrel ${{license[*]}} ${{arch[*]}} ${{#source[@]}} ${{#sha256sums[@]}}; declare -F build package"],
                            capture_output=True, check=True).stdout.decode()
    assert fields.startswith(f"softverbs {VERSION} 1 BSD-2-Clause x86_64 aarch64 1 1\n") and fields.endswith("build\npackage\n"), fields
    _builds("arch", f"{text}\nbuild; package")
    assert os.path.exists(f"{TEMPORARY}/arch-build/package/usr/share/licenses/softverbs/LICENSE")
    if not shutil.which("makepkg"):
        raise Skip("makepkg is not installed; bash alone has read the recipe")
    shutil.copytree(f"{_recipes()[0]}/arch", home)
    os.makedirs(f"{home}/bin")
    os.symlink("/bin/true", f"{home}/bin/pacman")  # makepkg asks it nothing here, and does not start without it
    for path in (home, f"{home}/PKGBUILD"):
        os.chmod(path, 0o777)
    done = subprocess.run([*cases.identity("nobody" if os.geteuid() == 0 else None), "makepkg", "--printsrcinfo"], cwd=home, capture_output=True, check=False,
                          env={**os.environ, "PATH": f"{home}/bin:{os.environ['PATH']}", "HOME": home})
    assert f"pkgver = {VERSION}" in done.stdout.decode() and "makedepends = rdma-core" in done.stdout.decode(), told(done)


def the_recipe_of_alpine_is_one():
    text = _text("alpine")
    fields = subprocess.run(["sh", "-euc", f'srcdir=/s; {text}\necho "$pkgname $pkgver $pkgrel $license $builddir"'], capture_output=True, check=True).stdout.decode()
    assert fields == f"softverbs {VERSION} 0 BSD-2-Clause /s/softverbs-{VERSION}\n", fields
    _builds("alpine", f"{text}\ncd $builddir; build; package", "sh")


def the_recipe_of_conda_forge_is_one():
    if not yaml:
        raise Skip("python3-yaml is not installed")
    recipe = yaml.safe_load(_text("conda-forge"))
    assert recipe["schema_version"] == 1 and recipe["context"]["version"] == VERSION, recipe
    assert {"package", "source", "build", "requirements", "tests", "about", "extra"} <= set(recipe), recipe
    assert set(recipe["requirements"]["host"]) == {"jansson", "libdeflate", "rdma-core"}, recipe
    assert recipe["about"]["license_file"] == "LICENSE" and os.path.exists(f"{TREE}/LICENSE")
    _builds("conda", "cd softverbs-*; " + "; ".join(recipe["build"]["script"]))
    for line in recipe["tests"][0]["script"]:
        assert softverbs(*line.split()[1:]).returncode == 0, line


def the_recipe_of_homebrew_is_one():
    if not shutil.which("ruby"):
        raise Skip("ruby is not installed")
    formula = f"{_recipes()[0]}/homebrew/softverbs.rb"
    around = """
class Formula
  @@said = {}
  %w[desc homepage url sha256 license].each { |word| define_singleton_method(word) { |value| @@said[word] = value } }
  def self.depends_on(what) (@@said["needs"] ||= []) << what.to_s end
  def self.test(&block) @@said["test"] = true end
  def self.said() @@said end
  def std_meson_args() ["--prefix=/usr"] end
  def system(*words) puts words.join(" ") end
end
load ARGV[0]
Softverbs.new.install
missing = %w[desc homepage url sha256 license needs test] - Formula.said.keys
abort "missing: #{missing}" if missing.length > 0
abort "too long" if Formula.said["desc"].length > 80
"""
    done = subprocess.run(["ruby", "-w", "-e", around, formula], capture_output=True, check=False)
    assert done.returncode == 0, told(done)
    _builds("homebrew", "cd softverbs-*; " + done.stdout.decode().replace("\n", ";"))


def the_recipe_of_spack_is_one():
    around = """
import sys, types
said = {}
def directive(name): return lambda *words, **more: said.setdefault(name, []).append((words, more))
package = types.ModuleType("spack.package")
for name in ("license", "version", "depends_on", "conflicts"): setattr(package, name, directive(name))
package.run_after = lambda phase: lambda function: function
package.on_package_attributes = lambda **attributes: lambda function: function
package.Executable = lambda path: None
meson = types.ModuleType("meson")
meson.MesonPackage = object
sys.modules |= {"spack": types.ModuleType("spack"), "spack.package": package, "spack_repo": types.ModuleType("r"), "spack_repo.builtin": types.ModuleType("b"),
                "spack_repo.builtin.build_systems": types.ModuleType("s"), "spack_repo.builtin.build_systems.meson": meson}
space = {}
exec(open(sys.argv[1]).read(), space)
print(*space["Softverbs"]().meson_args())
assert said["version"][0][1]["sha256"] and said["license"] and {words[0].split("@")[0] for words, _ in said["depends_on"]} >= {"jansson", "libdeflate", "rdma-core", "meson"}
"""
    ast.parse(_text("spack"))
    done = subprocess.run([sys.executable, "-c", around, f"{_recipes()[0]}/spack/package.py"], capture_output=True, check=False)
    assert done.returncode == 0, told(done)
    _understood(done.stdout.decode())


def the_recipe_of_nix_is_one():
    if not shutil.which("nix-instantiate"):
        raise Skip("nix-instantiate is not installed")
    around = """{ file }: let p = import file {
      lib = { licenses.bsd2 = "bsd2"; platforms.linux = [ ]; }; fetchurl = a: a; stdenv.mkDerivation = f: let x = f x; in x;
      meson = 1; ninja = 2; pkg-config = 3; python3 = 4; jansson = 5; libdeflate = 6; rdma-core = 7; };
    in builtins.toJSON { inherit (p) pname version src mesonFlags buildInputs meta installCheckPhase; }"""
    home = f"{TEMPORARY}/nix"
    done = subprocess.run(["nix-instantiate", "--eval", "--strict", "--store", f"{home}/store", "-E", f"({around}) {{ file = {_recipes()[0]}/nix/package.nix; }}".replace(
        "installCheckPhase; }", "; }")], capture_output=True, check=False, env={**os.environ, "HOME": home, "NIX_STATE_DIR": f"{home}/state", "NIX_STORE_DIR": f"{home}/nix/store"})
    assert done.returncode == 0, told(done)
    said = json.loads(json.loads(done.stdout))
    assert said["pname"] == "softverbs" and said["version"] == VERSION and said["src"]["url"] == URL and said["buildInputs"] == [5, 6, 7], said
    _understood(" ".join(said["mesonFlags"]))


def the_sources_can_be_set_up_as_the_recipes_say():
    """The one setup that runs: the options that the recipes have in common."""
    done = subprocess.run(["meson", "setup", f"{TEMPORARY}/setup", TREE, "--prefix=/usr", "--buildtype=plain", "--wrap-mode=nodownload", "-Db_pie=true", "-Dtests=false"],
                          capture_output=True, check=False)
    assert done.returncode == 0, told(done)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
