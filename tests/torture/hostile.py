"""Checkpoints made by an attacker. Most are signed as if they were good, so that they get far."""

import hashlib
import json
import os
import pickle
import random
import shutil
import signal
import struct

import numpy as np
import safetensors.numpy

from torture.legs import replaced, with_segments_of

SEGMENT_SLOTS = 24

JUNK = (
    None, True, -1, 0, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 0.5, -0.0, float("nan"), float("inf"), 1e308, "",
    "x", "../../x", "\0", "\ud800", "9" * 5000, [], [[]], [None], {}, {"": {}}, {"base64": "gASVIAAAAAAAAACM"},
    {"base64": "!"}, {"base64": 3}, {"seed": 1}, {"base64": ""},
)  # fmt: skip
NAMES = (
    "../evil.safetensors", "../../../etc/passwd", "/etc/passwd", "..", ".", "", "a/b.safetensors",
    "LEARNER.safetensors", "learner.safetensors\n", "learner.pkl", "manifest.json", "state.json/../state.json",
    "x" * 5000, "\0", "\ud800",
)  # fmt: skip
HEADERS = (
    {"a": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 8]}},
    {"a": {"dtype": "F32", "shape": [2**62], "data_offsets": [0, 2**64]}},
    {"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}},
    {"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}},
    {"a": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}},
    {"a": {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]}},
    {"a": {"dtype": "C64", "shape": [1], "data_offsets": [0, 8]}},
    {"a": {"dtype": "O", "shape": [1], "data_offsets": [0, 8]}},
    {"a": {"dtype": "U8", "shape": [8] + [1] * 100, "data_offsets": [0, 8]}},
    {"a": {"dtype": "U8", "shape": [0, 2**62, 2**62], "data_offsets": [0, 0]}},
    {"a": 3},
    {"__metadata__": {"a": 1}},
    [],
)


class Bomb:
    """An object whose pickle makes a file when it is loaded."""

    def __init__(self, marker):
        self._marker = marker

    def __reduce__(self):
        return open, (str(self._marker), "w")


class Victim:
    """A copy of a run whose only checkpoint is to be spoiled."""

    def __init__(self, stopped, path, rng, marker):
        shutil.copytree(stopped, path)
        self.path, self.rng, self.marker = path, rng, marker
        (self.directory,) = (path / "checkpoints").glob("step-*")
        self.manifest = json.loads((self.directory / "manifest.json").read_bytes())

    def any_file(self):
        return self.rng.choice([*self.directory.iterdir(), *self._segments()])

    def tensors(self):
        return self.rng.choice([*self.directory.glob("*.safetensors"), *self._segments()])

    def sign(self):
        """Write a manifest that has every digest right."""
        for name in list(self.manifest["files"]):
            self.manifest["files"][name] = _digest((self.directory / name).read_bytes())
        for entry in self.manifest["segments"]:
            file = self.segment(entry["sha256"])
            entry.update(_digest(file.read_bytes()))
            file.rename(self.segment(entry["sha256"]))
        self.sign_manifest()

    def sign_manifest(self):
        self.manifest.pop("checksum", None)
        checksum = hashlib.sha256(json.dumps(self.manifest, sort_keys=True).encode()).hexdigest()
        self.write_manifest(json.dumps(self.manifest | {"checksum": checksum}).encode())

    def write_manifest(self, content):
        (self.directory / "manifest.json").write_bytes(content)

    def _segments(self):
        return [self.segment(entry["sha256"]) for entry in self.manifest["segments"]]

    def segment(self, sha256):
        return self.directory.parent / f"segments/{sha256}.safetensors"


def _digest(content):
    return {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}


def _flipped(content, rng, times):
    content = bytearray(content)
    for _ in range(times):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(content)


def _spoil(value, rng):
    """Put junk in a random place of a JSON value, or take one away, or add one."""
    holder = value
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            break
        key = rng.choice(keys)
        if isinstance(holder[key], dict | list) and rng.random() < 0.8:
            holder = holder[key]
            continue
        if rng.random() < 0.15:
            del holder[key]
        else:
            holder[key] = rng.choice(JUNK)
        return
    holder.update(extra=rng.choice(JUNK)) if isinstance(holder, dict) else holder.append(rng.choice(JUNK))


def unharmed(victim):
    victim.sign()


def pickle_under_our_name(victim):
    bomb = pickle.dumps(Bomb(victim.marker), protocol=victim.rng.randrange(6))
    victim.any_file().write_bytes(bomb)


def signed_pickle_under_our_name(victim):
    bomb = pickle.dumps(Bomb(victim.marker), protocol=victim.rng.randrange(6))
    file = victim.rng.choice([victim.tensors(), victim.directory / "state.json"])
    file.write_bytes(bomb)
    victim.sign()


def rubbish(victim):
    victim.any_file().write_bytes(victim.rng.randbytes(victim.rng.choice([0, 1, 7, 8, 9, 100, 10_000])))


def endless(victim):
    os.truncate(victim.any_file(), 2**36)


def name_that_leads_out(victim):
    name = victim.rng.choice(NAMES)
    if victim.rng.random() < 0.5:
        old = victim.rng.choice(list(victim.manifest["files"]))
        victim.manifest["files"][name] = victim.manifest["files"].pop(old)
    else:
        victim.rng.choice(victim.manifest["segments"])["sha256"] = name
    victim.sign_manifest()


def absurd_header(victim):
    header = json.dumps(victim.rng.choice(HEADERS)).encode()
    length = victim.rng.choice([len(header)] * 6 + [0, 1, 2**20, 2**31, 2**63, 2**64 - 1])
    victim.tensors().write_bytes(struct.pack("<Q", length) + header + victim.rng.randbytes(8))
    victim.sign()


def flipped_or_cut_tensors(victim):
    file, rng = victim.tensors(), victim.rng
    content = file.read_bytes()
    data = 8 + struct.unpack("<Q", content[:8])[0]
    kind = rng.randrange(3)
    if kind == 0:
        content = content[: rng.randrange(len(content))]
    elif kind == 1:
        content = _flipped(content[:data], rng, 1 + rng.randrange(3)) + content[data:]
    else:
        content = content[:data] + _flipped(content[data:], rng, 1 + rng.randrange(50))
    file.write_bytes(content)
    victim.sign()


def deep_json(victim):
    depth = victim.rng.choice([100, 300, 400, 480, 495, 600, 900, 960, 990, 995, 1000, 5000, 200_000])
    opening, closing = victim.rng.choice([("[", "]"), ('{"a":', "}")])
    deep = opening * depth + "1" + closing * depth
    if victim.rng.random() < 0.5:
        text = (victim.directory / "state.json").read_text()
        (victim.directory / "state.json").write_text(
            victim.rng.choice(
                [text[:-1] + f', "deep": {deep}}}', text.replace('"clock": {', f'"clock": {{"a": {deep},'), deep]
            )
        )
        victim.sign()
    else:
        text = json.dumps(victim.manifest)
        victim.write_manifest((text[:-1] + f', "deep": {deep}}}').encode())


def wrong_arrays(victim):
    file, rng = victim.tensors(), victim.rng
    arrays = {name: array.copy() for name, array in safetensors.numpy.load_file(file).items()}
    name = rng.choice(list(arrays))
    array = arrays[name]
    change = rng.randrange(8)
    if change == 0:
        del arrays[name]
    elif change == 1:
        arrays[name + rng.choice(["s", "\0", "/../x"])] = arrays.pop(name)
    elif change == 2:
        arrays[name] = array.astype(rng.choice([np.uint8, np.int64, np.float64, np.float16, np.bool_]))
    elif change == 3:
        arrays[name] = np.zeros(rng.choice([(), (0,), (1,), (2, 0), (*array.shape, 1), (3, *array.shape)]), array.dtype)
    elif change == 4:
        arrays[name] = array.reshape(-1)[: rng.randrange(array.size + 1)]
    elif change == 5 and array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        arrays[name] = np.full_like(array, rng.choice([limits.min, limits.max, limits.max // 2, 7]))
    elif change == 6 and array.size:
        arrays[name] = np.frombuffer(rng.randbytes(array.nbytes), np.uint8).copy()
        if array.dtype != np.bool_:
            arrays[name] = arrays[name].view(array.dtype).reshape(array.shape)
    else:
        arrays["extra"] = np.zeros(3)
    file.write_bytes(safetensors.numpy.save(arrays))
    victim.sign()


def wrong_state(victim):
    state = json.loads((victim.directory / "state.json").read_bytes())
    _spoil(state, victim.rng)
    (victim.directory / "state.json").write_text(json.dumps(state))
    victim.sign()


def wrong_manifest(victim):
    victim.manifest.pop("checksum")
    _spoil(victim.manifest, victim.rng)
    victim.sign_manifest()


def numbers_beyond_the_arrays(victim):
    """Numbers that compiled code would follow out of its arrays; DeepSea only."""
    rng = victim.rng
    segment = victim.segment(rng.choice(victim.manifest["segments"])["sha256"])
    loop, replay = victim.directory / "loop.safetensors", victim.directory / "replay.safetensors"
    file, name = rng.choice([
        (segment, "action"), (segment, "observation"), (loop, "heads"), (loop, "observations"), (replay, "newest"),
        (replay, "reached"), (replay, "sampleable"),
    ])  # fmt: skip
    arrays = {key: array.copy() for key, array in safetensors.numpy.load_file(file).items()}
    beyond = rng.choice([-1, 2**31 - 1, 10_000]) if name != "sampleable" else 255
    arrays[name].reshape(-1)[rng.randrange(arrays[name].size) if name != "sampleable" else slice(None)] = beyond
    file.write_bytes(safetensors.numpy.save(arrays))
    victim.sign()


def no_regular_file(victim):
    file = victim.any_file()
    file.unlink()
    kind = victim.rng.randrange(4)
    if kind == 0:
        file.mkdir()
    elif kind == 1:
        os.mkfifo(file)
    elif kind == 2:
        file.symlink_to("/dev/zero")
    else:
        file.symlink_to(file.name)


WRONG = (pickle_under_our_name, rubbish, endless, name_that_leads_out, no_regular_file, numbers_beyond_the_arrays)
"""Must be refused, whatever they draw."""
DOUBTFUL = (
    signed_pickle_under_our_name, absurd_header, flipped_or_cut_tensors, deep_json, wrong_arrays, wrong_state,
    wrong_manifest,
)  # fmt: skip
"""May draw a change that nothing is wrong with."""


def load_victims(send, settings, stopped, path, seeds, kinds):
    """Send for each seed the outcome of a run with a damaged checkpoint: (seed, "refused" or "accepted", why)."""
    from bootdqn.common.errors import TrainingError, UsageError
    from bootdqn.config.settings import from_flat
    from bootdqn.runs import provenance
    from bootdqn.training import run, trainer

    original = trainer.train

    def train_a_little(config, components):
        for number, result in enumerate(original(config, components)):
            if number == 3:
                signal.raise_signal(signal.SIGTERM)
            yield result

    with (
        with_segments_of(SEGMENT_SLOTS)(),
        replaced(trainer, "train", train_a_little),
        replaced(provenance, "provenance", lambda *_: {}),
    ):
        for seed in seeds:
            victim = Victim(stopped, path / "victim", random.Random(seed), path / "marker")
            kinds[seed % len(kinds)](victim)
            try:
                run.train_run(from_flat(settings), victim.path)
                send((seed, "accepted", ""))
            except TrainingError as error:
                send((seed, "accepted", str(error)))
            except UsageError as error:
                send((seed, "refused", str(error)))
            shutil.rmtree(victim.path)
