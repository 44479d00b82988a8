# For nixpkgs: pkgs/by-name/so/softverbs/package.nix
{
  lib,
  stdenv,
  fetchurl,
  meson,
  ninja,
  pkg-config,
  python3,
  jansson,
  libdeflate,
  rdma-core,
}:

stdenv.mkDerivation (finalAttrs: {
  pname = "softverbs";
  version = "@VERSION@";

  src = fetchurl {
    url = "@URL@";
    sha256 = "@SHA256@";
  };

  nativeBuildInputs = [
    meson
    ninja
    pkg-config
    python3
  ];

  buildInputs = [
    jansson
    libdeflate
    rdma-core
  ];

  postPatch = "patchShebangs tools";

  mesonBuildType = "release";
  mesonFlags = [ "-Dtests=false" ];

  doInstallCheck = true;
  installCheckPhase = ''
    $out/bin/softverbs version | grep -F ${finalAttrs.version}
    SOFTVERBS_DIR=$TMPDIR/softverbs $out/bin/softverbs demo
  '';

  meta = {
    description = "RDMA verbs without RDMA hardware";
    homepage = "https://softverbs.invalid/";
    license = lib.licenses.bsd2;
    platforms = lib.platforms.linux;
    maintainers = [ ];
    mainProgram = "softverbs";
  };
})
