"""How a policy over sets of actions is asked about many states at once: one way a file.

An evaluator is made once for a model. `log_probs(obs, legal)` gives the log-probability (A,) of every legal action and the
value (B,) of every state, to act by; `evaluate(obs, legal, choice)` gives an `Evaluated` of the choices, to learn from.
"""
