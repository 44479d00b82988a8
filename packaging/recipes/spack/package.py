# For Spack: repos/spack_repo/builtin/packages/softverbs/package.py of spack-packages.
from spack_repo.builtin.build_systems.meson import MesonPackage

from spack.package import *


class Softverbs(MesonPackage):
    """RDMA verbs without RDMA hardware: unmodified programs of libibverbs run
    on software devices, wholly in user space."""

    homepage = "https://softverbs.invalid/"
    url = "@URL@"

    license("BSD-2-Clause")

    version("@VERSION@", sha256="@SHA256@")

    depends_on("c", type="build")
    depends_on("meson@0.56:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("jansson")
    depends_on("libdeflate")
    depends_on("rdma-core@25:")

    conflicts("platform=darwin")
    conflicts("platform=windows")

    def meson_args(self):
        return ["-Dtests=false"]

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(self.prefix.bin.softverbs)("demo")
