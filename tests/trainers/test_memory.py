"""Out of memory: the error names what is large and what to lower, and the run so far is kept."""

import functools
import gc
import weakref
from collections import deque

import numpy as np
import pytest
import torch
from torch import nn

from rlbench import Choices, DQNConfig
from rlbench.trainers.dqn import DQN
from rlbench.trainers.held import held_tensors
from rlbench.trainers.logbook import Logbook
from rlbench.trainers.memory import OutOfMemory, explain_out_of_memory, largest

CONFIG = DQNConfig(
    total_timesteps=400, buffer_size=5_000, batch_size=8, hidden=(16,), learning_starts=10, train_frequency=1,
    log_frequency=50, eval_episodes=3,
)  # fmt: skip
CUDA_SAYS = "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 139.80 GiB.\nmore"


def run(trainer, log, steps):
    """What `DQN.train` does, in small."""
    while trainer.env_steps < steps:
        trainer.loop.advance(log)
        log.step()


def failing(trainer, after, error):
    """Make one update run out of memory, with a large tensor in its hands; returns where that will be noted."""
    update, alive = trainer.update, []

    def run_out(batch):
        if trainer.updates == after and not alive:
            large = torch.zeros(1000)
            alive.append(weakref.ref(large))
            raise error
        update(batch)

    trainer.update = run_out
    return alive


def out_of_memory(config=CONFIG, choices=None, error=None):
    trainer = DQN(config, choices)
    alive = failing(trainer, 130, error or torch.OutOfMemoryError(CUDA_SAYS))
    with pytest.raises(OutOfMemory) as caught:
        trainer.train(progress=False)
    return trainer, caught.value, alive


def test_the_error_names_tensors_and_settings():
    _, error, _ = out_of_memory(choices=Choices.plain())
    text = str(error)
    assert text.startswith("out of memory on cpu at env step 141. ")
    assert "replay.fields.obs (5000, 4) 0.08 MB;" in text and "Tried to allocate 20.00 GiB" in text
    assert "Lower a setting, the first ones save most: buffer_size=5000 (0.28 MB), " in text
    assert all(f" {setting} (" in text for setting in ("batch_size=8", "hidden=(16,)", "num_envs=1"))
    assert "\n" not in text


def test_only_what_lies_on_the_device_counts():
    """Replay on the host does not fill a GPU: it comes last, with nothing to save."""
    trainer = DQN(CONFIG.replace(batch_size=4_096), Choices.plain())
    trainer.device = torch.device(
        "meta"
    )  # a device of another kind, with nothing on it but what is computed from sizes
    with pytest.raises(OutOfMemory) as caught, explain_out_of_memory(trainer):
        raise torch.OutOfMemoryError(CUDA_SAYS)
    text = str(caught.value)
    assert (
        "on meta at env step 0. Largest there: activations (3, 4096, 18) 0.88 MB; minibatch (4096, 13) 0.21 MB. "
        in text
    )
    assert "save most: batch_size=4096 (1.1 MB), " in text and "buffer_size=5000 (0 MB)" in text


def test_whoever_waits_for_pytorchs_error_gets_it():
    assert issubclass(OutOfMemory, torch.cuda.OutOfMemoryError)


def test_what_was_learnt_is_kept():
    trainer, error, _ = out_of_memory()
    history = error.history
    assert history.interrupted and history.env_steps == 141 and history.updates == 130
    assert list(history.to_frame()["env_step"]) == [50, 100, 141]
    assert len(history.episodes) > 0 and history.returns == [] and history.summary()["train_s"] > 0
    assert all(torch.equal(history.weights[name], tensor) for name, tensor in trainer.online.state_dict().items())


def test_training_goes_on_from_there():
    trainer, _, _ = out_of_memory()
    history = trainer.train(progress=False)
    assert (history.env_steps, history.interrupted, len(history.returns)) == (400, False, 3)


def test_what_the_failed_call_held_is_let_go():
    _, error, alive = out_of_memory()
    gc.collect()
    assert error.__cause__ is None and error.__suppress_context__
    assert [ref() for ref in alive] == [None]


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 9e9 bytes")],
)
def test_memory_of_the_host_is_told_alike(error):
    assert "Lower a setting" in str(out_of_memory(error=error)[1])


def test_other_errors_pass_as_they_are():
    error = RuntimeError("shapes do not fit")
    with pytest.raises(RuntimeError) as caught, explain_out_of_memory(DQN(CONFIG)):
        raise error
    assert caught.value is error


def test_no_room_to_close_the_books_still_leaves_the_rows():
    trainer = DQN(CONFIG)
    log = Logbook(trainer, False, None, None)
    with pytest.raises(OutOfMemory) as caught, log, explain_out_of_memory(trainer, log):
        run(trainer, log, 120)
        log.finish = lambda: (_ for _ in ()).throw(torch.OutOfMemoryError("again"))
        raise torch.OutOfMemoryError(CUDA_SAYS)
    assert list(caught.value.history.to_frame()["env_step"]) == [50, 100] and not trainer.stopping


def test_without_a_log_there_is_no_history_and_it_is_explained_once():
    trainer = DQN(CONFIG)
    with pytest.raises(OutOfMemory) as caught, explain_out_of_memory(trainer), explain_out_of_memory(trainer):
        raise torch.OutOfMemoryError(CUDA_SAYS)
    assert caught.value.history is None and "Nothing else is lost" not in str(caught.value)
    assert str(caught.value).count("out of memory on") == 1


@pytest.mark.parametrize("replay", ["deque", "ring_numpy", "ring_torch"])
def test_sizes_of_what_a_trainer_holds(replay):
    """CartPole: rows of 4 + 4 floats and 5 scalars; net 4-16-2; Adam keeps two numbers for each of 114 parameters."""
    trainer = DQN(CONFIG, Choices.plain().replace(replay=replay))
    log = Logbook(trainer, False, None, None)
    run(trainer, log, 1_200)
    log.progress.__exit__(None, None, None)
    pieces = {piece.name: piece for piece in largest(trainer)}
    total = sum(piece.nbytes for name, piece in pieces.items() if name.startswith("replay."))
    assert (
        total == {"deque": 1_200 * 2 * 4 * 4, "ring_numpy": 5_000 * (13 * 4 + 4), "ring_torch": 5_001 * 13 * 4}[replay]
    )
    for prefix, count in (("online", 2 * 114), ("target", 114)):  # parameters and their gradients
        assert sum(p.nbytes for name, p in pieces.items() if name.startswith(f"{prefix}.")) == 4 * count
    adam = [p.nbytes for name, p in pieces.items() if name.startswith("apply_update.") and "exp_avg" in name]
    assert sum(adam) == 2 * 4 * 114
    assert pieces["minibatch"].shape == (8, 13) and pieces["activations"].shape == (3, 8, 18)


class Holder:
    """Something with attributes of all kinds."""

    __slots__ = ("things",)

    def __init__(self, **things):
        self.things = things


def names_and_bytes(**things):
    return {piece.name.removeprefix("things."): piece.nbytes for piece in held_tensors(Holder(**things))}


def test_one_piece_of_memory_counts_once_and_its_widest_view_names_it():
    rows = torch.zeros(10, 4)
    array = np.zeros((6, 2))
    found = names_and_bytes(part=rows[2:3], whole=rows, view=rows.numpy(), head=array[:1], array=array)
    assert found == {"whole": 160, "array": 96}


def test_views_alone_count_as_the_whole():
    assert names_and_bytes(part=torch.zeros(10, 4)[2:3]) == {"part": 160}


def test_closures_partials_methods_and_deques_are_followed():
    inner, other, third = torch.zeros(3), np.zeros(4, np.float32), torch.zeros(5)
    found = names_and_bytes(
        closure=lambda: inner,
        partial=functools.partial(print, other),
        method=Holder(x=third).__init__,
        module=nn.Linear(1, 1, bias=False),
        text="x",
        rows=deque([torch.zeros(2)] * 3, maxlen=9),
    )
    assert found == {
        "closure.inner": 12, "partial.args.0": 16, "method.self.things.x": 20, "module.weight": 4, "rows.0": 8,
    }  # fmt: skip


def test_long_lists_count_as_so_many_times_their_first():
    found = names_and_bytes(rows=deque([(np.zeros(2, np.float32), 1)] * 2_000), numbers=[1.0] * 5_000)
    assert found == {"rows": 16_000}


def test_a_ring_of_objects_ends():
    ring = Holder()
    ring.things["self"] = ring
    assert held_tensors(ring) == []


def test_a_tensor_without_numbers():
    assert names_and_bytes(a=torch.zeros(0), b=torch.zeros(0, 3)) == {"a": 0, "b": 0}
