"""How often PyTorch compiles one function before it gives up and runs it eagerly.

Eight times by default, which is meant for sizes that change. Each budget, each plan that is made again and each batch that max_batch tries is a
compilation too, and all models of a library whose `forward` has one decorator share one function. The ninth would run without a plan.
"""
import torch._dynamo.config as config

_OFTEN = 1 << 30


def as_often_as_asked():
    """While something is compiled for the first time."""
    return config.patch(recompile_limit=_OFTEN, accumulated_recompile_limit=_OFTEN)
