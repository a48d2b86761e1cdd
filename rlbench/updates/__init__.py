"""Ways to take a step of Adam on the temporal-difference loss: PyTorch's modules, one pure function, compiled, captured, native.

Every way is a class `(online, target, config, make_optimizer, precision)`; a call `(batch, learning_rate)` updates the online
network in place and returns `Updated`. `chunk` minibatches are taken in one call, one after another in the batch's rows.
`build_s` are the seconds of compilation so far, `recompiles` the compilations after the first, `skipped` the steps that were
not taken because their gradients were infinite, `taken` those that were.
"""
