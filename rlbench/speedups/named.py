"""The three named Choices, slot by slot in the order in which a transition passes them: DQN's and shared slots, then PPO's."""

NAIVE = {
    "loop": "python",
    "market_io": "read_each_episode",
    "features": "per_step",
    "environments": "one_by_one",
    "replay": "deque",
    "priorities": "loop",
    "conversion": "each_sample",
    "transfer": "pageable",
    "update": "eager",
    "precision": "float32",
    "optimizer": "for_loop",
    "metrics": "item_each_step",
    "backend": "default",
    "games": "one_by_one",
    "action_encoding": "loop",
    "evaluate": "loop",
    "gae": "loop",
    "old_log_probs": "recompute_loop",
    "upload": "per_minibatch",
    "minibatch": "stack_samples",
    "ppo_update": "eager",
}
# Adam's own defaults: a loop on the CPU, foreach on CUDA.
PLAIN_CPU = {
    "loop": "python",
    "market_io": "in_memory",
    "features": "table",
    "environments": "one_by_one",
    "replay": "ring_numpy",
    "priorities": "vectorised",
    "conversion": "stack_once",
    "transfer": "pageable",
    "update": "eager",
    "precision": "float32",
    "optimizer": "for_loop",
    "metrics": "on_device",
    "backend": "default",
    "games": "batched",
    "action_encoding": "shift",
    "evaluate": "padded",
    "gae": "rows",
    "old_log_probs": "stored",
    "upload": "per_minibatch",
    "minibatch": "index_views",
    "ppo_update": "eager",
}
PLAIN_CUDA = {**PLAIN_CPU, "optimizer": "foreach", "upload": "whole_rollout_once"}
# Loops that do everything themselves. Where an env or a setting does not let them, the rest is the best for a Python loop: on
# the CPU native code, where a replay of tensors samples no faster than NumPy's; on CUDA a replay there, which saves the transfer
# of every batch. The fused optimizer stands in where there is no compiler.
FAST_CPU = {
    **PLAIN_CPU,
    "loop": "native",
    "environments": "native",
    "update": "native",
    "optimizer": "fused",
    "games": "native",
    "gae": "scan",
    "evaluate": "packed_native",
    "ppo_update": "native",
}
FAST_CUDA = {
    **PLAIN_CUDA,
    "loop": "fused",
    "replay": "ring_torch",
    "update": "cuda_graph",
    "optimizer": "fused",
    "evaluate": "packed_compiled",
    "gae": "scan",
    "ppo_update": "compiled",
}
