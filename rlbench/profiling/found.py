"""What a profile finds unaided: calls that every training makes are wrapped while a profile is open.

    env         `step` and `reset` of Gymnasium's and Gym's envs and vector envs, of Stable-Baselines3's, and of any class of the
                reader's that has both
    forward     calling an `nn.Module`
    backward    `torch.autograd.backward` (which `Tensor.backward` calls) and `torch.autograd.grad`
    optimizer   `step` of every optimizer
    sample      the next minibatch of a `DataLoader`

A wrapper asks for this thread's clock and, without one, passes the call on: a wrapper that somebody kept does no harm. Under
torch.compile the calls are traced as if nothing were wrapped. Wrappers name modules, not objects of theirs, so that a class of
the reader's that is wrapped can still be sent to a worker process.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from rlbench import phases

ENV_ROOTS = (
    *(("gymnasium", "Env"), ("gymnasium.vector", "VectorEnv"), ("gym", "Env"), ("gym.vector", "VectorEnv")),
    ("stable_baselines3.common.vec_env", "VecEnv"),
)
MARK = "_rlbench_found"


def found(function: Callable, name: str) -> Callable:
    """`function`, its calls counted as phase `name` where the code around has not said otherwise; quick within another."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return function(*args, **kwargs)
        clock = phases.current.clock
        if clock is None or not clock.finds or not (clock.top.free or clock.around):
            return function(*args, **kwargs)
        with clock.finding(name):
            return function(*args, **kwargs)

    setattr(call, MARK, True)
    return call


class Wrappers:
    """Wraps while it is installed; installed twice, it stays until it was removed twice."""

    def __init__(self) -> None:
        self.users = 0
        self._undo: list[tuple[Any, str, Any, Any]] = []  # holder, name, as it was, wrapped
        self._module: tuple[Any, ...] = ()  # a module's call as it was, and wrapped

    def install(self, *namespaces: dict[str, Any]) -> None:
        """`namespaces`: where classes of the reader's are looked for, such as the globals of a script."""
        self.users += 1
        self.wake()
        if self.users == 1:
            self._torch()
            build = builtins.__build_class__
            self._put(builtins, "__build_class__", self._building(build))
        for root in env_roots():
            for cls in (root, *subclasses(root)):
                self._env(cls)
        for namespace in (vars(sys.modules["__main__"]), *namespaces):
            for value in list(namespace.values()):
                if is_env(value):
                    self._env(value)

    def remove(self) -> None:
        self.users -= 1
        if self.users:
            return
        for holder, name, before, wrapped in reversed(self._undo):
            if vars(holder).get(name) is wrapped:  # else somebody wrapped it again; ours passes calls on
                setattr(holder, name, before)
        self._undo.clear()
        self._module = ()

    def rest(self) -> None:
        """The only user looks away: calls of modules, which are many, go their own way until `wake`."""
        if self.users == 1 and vars(torch.nn.Module)["__call__"] is self._module[1]:
            torch.nn.Module.__call__ = self._module[0]

    def wake(self) -> None:
        if self._module and vars(torch.nn.Module)["__call__"] is self._module[0]:
            torch.nn.Module.__call__ = self._module[1]

    def _torch(self) -> None:
        optim = torch.optim.Optimizer
        self._put(torch.nn.Module, "__call__", found(torch.nn.Module.__call__, "forward"))
        self._module = self._undo[-1][2:]
        self._put(torch.autograd, "backward", found(torch.autograd.backward, "backward"))
        self._put(torch.autograd, "grad", found(torch.autograd.grad, "backward"))
        self._put(optim, "__init__", self._making(optim.__init__))
        for cls in subclasses(optim):
            self._method(cls, "step", "optimizer")
        loader = torch.utils.data.dataloader._BaseDataLoaderIter
        self._put(loader, "__next__", found(loader.__next__, "sample"))

    def _making(self, init: Callable) -> Callable:
        @functools.wraps(init)
        def make(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            init(optimizer, *args, **kwargs)
            if self.users:
                self._method(type(optimizer), "step", "optimizer")

        return make

    def _building(self, build: Callable) -> Callable:
        @functools.wraps(build)
        def build_class(body: Callable, name: str, *bases: Any, **kwargs: Any) -> Any:
            cls = build(body, name, *bases, **kwargs)
            if self.users and is_env(cls):
                self._env(cls)
            return cls

        return build_class

    def _env(self, cls: type) -> None:
        self._method(cls, "step", "env")
        self._method(cls, "step_wait", "env")
        self._method(cls, "reset", "reset")

    def _method(self, cls: type, name: str, phase: str) -> None:
        function = vars(cls).get(name)
        if callable(function) and not hasattr(function, MARK) and not isinstance(function, staticmethod | classmethod):
            self._put(cls, name, found(function, phase))

    def _put(self, holder: Any, name: str, wrapped: Callable) -> None:
        self._undo.append((holder, name, getattr(holder, name), wrapped))
        setattr(holder, name, wrapped)


def env_roots() -> Iterator[type]:
    """The base classes of envs that are loaded."""
    for module, name in ENV_ROOTS:
        root = getattr(sys.modules.get(module), name, None)
        if isinstance(root, type):
            yield root


def subclasses(root: type) -> Iterable[type]:
    """All classes below `root`, each once."""
    seen: dict[type, None] = {}
    stack = [root]
    while stack:
        for cls in type.__subclasses__(stack.pop()):
            if cls not in seen:
                seen[cls] = None
                stack.append(cls)
    return tuple(seen)


def is_env(value: Any) -> bool:
    """Whether it is a class of environments: below a known base, or with functions `step` and `reset` and no part of torch."""
    if not isinstance(value, type):
        return False
    if issubclass(value, tuple(env_roots())):
        return True
    if issubclass(value, torch.nn.Module | torch.optim.Optimizer):
        return False
    return callable(getattr(value, "step", None)) and callable(getattr(value, "reset", None))


WRAPPERS = Wrappers()
