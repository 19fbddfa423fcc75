from .benchmark import Benchmark as Benchmark
from .benchmark import load_benchmark as load_benchmark
from .demo import Demo as Demo
from .demo import run_demo as run_demo
from .reproduction import Reproduction as Reproduction
from .reproduction import reproduce as reproduce
