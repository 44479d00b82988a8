# For Homebrew on Linux: Formula/s/softverbs.rb
class Softverbs < Formula
  desc "RDMA verbs without RDMA hardware"
  homepage "https://softverbs.invalid/"
  url "@URL@"
  sha256 "@SHA256@"
  license "BSD-2-Clause"

  depends_on "meson" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => :build
  depends_on "python@3.13" => :build
  depends_on "jansson"
  depends_on "libdeflate"
  depends_on :linux
  depends_on "rdma-core"

  def install
    system "meson", "setup", "build", *std_meson_args, "-Dtests=false"
    system "meson", "compile", "-C", "build"
    system "meson", "install", "-C", "build", "--no-rebuild"
  end

  test do
    ENV["SOFTVERBS_DIR"] = testpath/"softverbs"
    assert_match version.to_s, shell_output("#{bin}/softverbs version")
    system bin/"softverbs", "demo"
  end
end
