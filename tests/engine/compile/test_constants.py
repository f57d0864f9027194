"""Host-backed constants: shared with the device, not copied."""

import subprocess
import sys

import numpy as np

from engine.builder import Builder
from nutkin.compile import bind
from nutkin.model import read

MEASURE = """
import resource, sys
import numpy as np
import nutkin
from nutkin.compile import bind
from nutkin.model import read
from nutkin.sampler import Options, Run, advance, compile_sampler

tree = {tree!r}
rows, columns = 100_000, 100

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

def peak():
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(status["VmHWM"].split()[0]) * 1024

def trip(rows):
    # As the port does it: the elements sit in an aligned buffer that is made once and filled.
    buffer = np.empty(rows * columns * 8 + 64, np.uint8)
    start = -buffer.ctypes.data % 64
    x = buffer[start : start + rows * columns * 8].view(np.float64).reshape(rows, columns)
    np.random.default_rng(0).standard_normal(out=x)
    x.flags.writeable = False
    y = np.zeros(rows)
    target = bind(read(tree), dict(x=x, y=y), {{}})
    return Run(compile_sampler(target), Options(chains=1, warmup=2, draws=2, max_tree_depth=2)), x.nbytes

def finish(run):
    (chain,) = run.chains
    while not chain.finished:
        run.meet(chain) if chain.waits else advance([chain])

first, size = trip(rows)
finish(first)

before = resident()
open("/proc/self/clear_refs", "w").write("5")  # forget the peak
second, size = trip(rows)
finish(second)
print((peak() - before) / size)
"""


def regression() -> Builder:
    tree = Builder()
    x, y = tree.data("x"), tree.data("y")
    beta = tree.rv("beta", "normal", {"mu": 0, "sigma": 1}, shape=[100])
    tree.observe("obs", "normal", {"mu": tree.call("dot", x, beta), "sigma": 1}, y)
    return tree


def test_a_large_design_matrix_is_held_once():
    """From the empty buffer to the last draw, at the peak, beside a program that is there already."""
    script = MEASURE.format(tree=regression().tree())
    output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert float(output) < 1.3


def test_an_aligned_array_is_shared_with_the_device():
    buffer = np.zeros(8 * 100_000 + 64, np.uint8)
    start = -buffer.ctypes.data % 64
    x = buffer[start : start + 8 * 100_000].view(np.float64).reshape(1000, 100)
    target = bind(read(regression().tree()), {"x": x, "y": np.zeros(1000)}, {}, rewrites=[])
    assert target.arguments[0].unsafe_buffer_pointer() == x.ctypes.data
