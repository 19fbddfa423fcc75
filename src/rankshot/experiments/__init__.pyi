from .benchmark import Benchmark as Benchmark, load_benchmark as load_benchmark
from .demo import Demo as Demo, run_demo as run_demo
from .reproduction import Reproduction as Reproduction, reproduce as reproduce
