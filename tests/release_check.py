"""Build the wheel and the source distribution, check them, and try every command of the wheel in an empty environment.

    python tests/release_check.py          from the root of a clone, or make release-check

Everything happens in a temporary directory, with the versions of constraints.txt; PyTorch alone takes about a gigabyte.
"""

import email.parser
import os
import shlex
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOT_IN_SDIST = ("reproduction/results/", "agents/", ".ci/", "runs/", "dist/", ".venv/")
REQUIRED_METADATA = (
    "Name", "Version", "Summary", "Author", "License-Expression", "License-File", "Keywords", "Classifier",
    "Project-URL", "Requires-Python", "Requires-Dist", "Provides-Extra", "Description-Content-Type",
)  # fmt: skip
DEEP_SEA = "--size 4 --update-every 1 --max-episodes 30 --num-heads 3"
SMOKE = (
    ("--version", 0, PROJECT["version"]),
    ("--help", 0, "inspect"),
    (f"train deep-sea {DEEP_SEA} --run-dir first --keep-checkpoint", 0, ""),
    ("resume first --budget 40", 0, ""),
    ("evaluate first --episodes 2", 0, "return"),
    ("inspect first --out inspect.html", 0, "inspect.html"),
    ("train gym --env-id CartPole-v1 --total-steps 300 --run-dir cart", 0, ""),
    ("train atari --game Pong --run-dir pong", 2, "[atari]"),
    ("train minatar --game breakout --run-dir breakout", 2, "[minatar]"),
    ("train minigrid --env-id MiniGrid-DoorKey-5x5-v0 --run-dir doorkey", 2, "pip install minigrid"),
    ("train bsuite --id deep_sea/0 --max-episodes 5 --run-dir bsuite", 0, ""),
    ("sweep paper-deepsea-smoke --dry-run", 0, "at most"),
    ("sweep paper-deepsea-smoke --dry-run --cluster cluster.toml", 0, "wall time"),
    ("sweep paper-deepsea-smoke --out swept 'seed=[0]' --workers 1", 0, "finished in swept"),
    ("sweep paper-deepsea-smoke --out rays --ray auto", 2, "[ray]"),
    ("report swept --out report.html", 0, "report.html"),
    ("demo --sizes 4 --num-seeds 1 --max-episodes 20 --strategies greedy --workers 1", 0, "runs/demo/report.html"),
)
"""Arguments, exit code, and a part of the output of each command; what an extra brings is asked for by name."""
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
CLUSTER = "cores = 8\nmemory_gib = 64\nframes_per_second = 100\nnode_failures_per_hour = 1\n"
TORCH = "import torch; print(torch.__version__)"
PUBLIC_NAMES = "import bootdqn; [getattr(bootdqn, name) for name in bootdqn.__all__]; print(bootdqn.__file__)"


def main() -> int:
    """Return 0 if everything is right."""
    with tempfile.TemporaryDirectory(prefix="bootdqn-release-") as temporary:
        directory = Path(temporary)
        wheel, sdist = build(directory)
        check_wheel(wheel)
        check_sdist(sdist)
        check_same_wheel(wheel, sdist, directory)
        smoke(wheel, directory)
    print("release-check: everything is right")
    return 0


def run(*command: object, cwd: Path = ROOT) -> str:
    """Run a command, and return its output; exit with it if the command fails."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(
            f"{shlex.join(str(word) for word in command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def environment(path: Path) -> Path:
    """Create an empty environment, and return its directory of programs."""
    venv.create(path, with_pip=True)
    return path / "bin"


def pip_install(programs: Path, *what: object) -> None:
    """Install into an environment, with the versions of constraints.txt."""
    quiet = ("--quiet", "--disable-pip-version-check")
    run(programs / "python", "-m", "pip", "install", *quiet, "-c", ROOT / "constraints.txt", *what)


def build(directory: Path) -> tuple[Path, Path]:
    """Build both distributions with the build backend alone."""
    programs = environment(directory / "build")
    pip_install(programs, "hatchling")
    run(programs / "python", "-m", "hatchling", "build", "-d", directory / "dist")
    (wheel,), (sdist,) = (list((directory / "dist").glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
    print(f"built {wheel.name} ({wheel.stat().st_size:,} bytes) and {sdist.name} ({sdist.stat().st_size:,} bytes)")
    return wheel, sdist


def check_wheel(wheel: Path) -> None:
    """Check that the wheel has the files of the package, nothing else, and complete metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        fields = email.parser.Parser().parsestr(archive.read(metadata).decode())
    tracked = run("git", "ls-files", "src").split()
    expected = {name.removeprefix("src/") for name in tracked}
    found = {name for name in names if ".dist-info/" not in name}
    require(found == expected, f"the wheel lacks {expected - found} or should not have {found - expected}")
    missing = [name for name in REQUIRED_METADATA if not fields.get_all(name)]
    require(not missing, f"the metadata lack {missing}")
    require(fields["Version"] == PROJECT["version"], f"the version is {fields['Version']}")
    torch = [one for one in fields.get_all("Requires-Dist", []) if one.startswith("torch")]
    require(torch != [] and "<" not in torch[0], f"PyTorch has an upper bound: {torch}")
    print(f"wheel: {len(found)} files, metadata complete, {torch[0]}")


def check_sdist(sdist: Path) -> None:
    """Check that the source distribution has all tracked files but those of `NOT_IN_SDIST`."""
    with tarfile.open(sdist) as archive:
        found = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    expected = {name for name in run("git", "ls-files").split("\n") if name and not name.startswith(NOT_IN_SDIST)}
    found.discard("PKG-INFO")
    require(found == expected, f"the sdist lacks {expected - found} or should not have {found - expected}")
    print(f"sdist: {len(found)} files, without {', '.join(NOT_IN_SDIST)}")


def check_same_wheel(wheel: Path, sdist: Path, directory: Path) -> None:
    """Check that the source distribution builds the same wheel."""
    programs = directory / "build/bin"
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation")
    run(programs / "python", "-m", "pip", "wheel", *options, "-w", directory / "again", sdist)
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(directory / "again" / wheel.name) as other:
        same = {name: one.read(name) for name in one.namelist()} == {
            name: other.read(name) for name in other.namelist()
        }
    require(same, "the sdist builds another wheel than the clone")
    print("the sdist builds the same wheel")


def smoke(wheel: Path, directory: Path) -> None:
    """Install the wheel into an empty environment, and run every command there."""
    programs, here = environment(directory / "empty"), directory / "here"
    here.mkdir()
    (here / "cluster.toml").write_text(CLUSTER)
    pip_install(programs, wheel)
    pinned = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch==")]
    version = run(programs / "python", "-c", TORCH).partition("+")[0].strip()
    require(pinned == [f"torch=={version}"], f"PyTorch {version} was installed, and constraints.txt has {pinned}")
    where = run(programs / "python", "-c", PUBLIC_NAMES, cwd=here).strip()
    require(Path(where).is_relative_to(directory), f"bootdqn was imported from {where}")
    print(f"installed with PyTorch {version}")
    for arguments, code, part in SMOKE:
        command = [str(programs / "bootdqn"), *shlex.split(arguments)]
        done = subprocess.run(command, cwd=here, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        output = done.stdout + done.stderr
        require(done.returncode == code and part in output, f"bootdqn {arguments}: {done.returncode}\n{output}")
        print(f"{done.returncode}  bootdqn {arguments}")


def require(condition: bool, message: str) -> None:
    """Exit with a message unless a condition holds."""
    if not condition:
        sys.exit(f"release-check: {message}")


if __name__ == "__main__":
    sys.exit(main())
