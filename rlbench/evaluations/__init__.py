"""How a policy over sets of actions is asked about many states at once: one way a file.

An evaluator is made once for a model. `log_probs(obs, legal)` gives the log-probability (A,) of every legal action and the
value (B,) of every state, to act by; `evaluate(obs, legal, choice)` gives an `Evaluated` of the choices, to learn from. Both are
float32 whatever autocast says; `Loop` is the plainest, and all others agree with it.

The packed form works alone, too. These lines take the place of an `evaluate()` that goes through samples one by one, for any
network that scores pairs of a state and an action; `obs` (B, D), `choice` (B,) and `ids_of_each_state`, a list of lists, are
yours:

    import rlbench
    from rlbench import segments

    legal = rlbench.pack(ids_of_each_state)  # ids (A,) of all states one after another, and where each state's begin
    states = legal.states()  # (A,) the state that each action belongs to
    scores = network(obs[states], legal.ids)  # (A,) all pairs in one call
    log_p = segments.log_softmax(scores, states, len(obs))  # (A,) among the actions of the same state
    log_prob = log_p[legal.offsets[:-1] + choice]  # (B,)
    entropy = segments.entropy(log_p, states, len(obs))  # (B,)
"""
