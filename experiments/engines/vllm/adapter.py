"""vLLM on the CPU: its Triton kernels in the interpreter, the Python around them unedited."""

import eagle
import filters
import grammar
import runner_v1
import runner_v2


def components():
    return [*filters.components(), *runner_v1.components(), *runner_v2.components(), *grammar.components(),
            *eagle.components()]
