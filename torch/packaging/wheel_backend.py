"""What pip calls to build the package (PEP 517): the libraries are built if they are not there, tools/make_wheel.py does the rest."""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    import make_wheel
    build = os.path.join(ROOT, "build", "release")
    if not os.path.exists(os.path.join(build, "src", "plimsoll", "capi", "libplimsoll.so.0")):
        subprocess.run(["make", "-C", ROOT, "wheel-libraries"], check=True)
    return os.path.basename(make_wheel.write(build, wheel_directory))


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("a source archive of the package alone cannot be built: the planner's sources are beside it; use a checkout")
