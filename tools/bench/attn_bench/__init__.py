"""The parts of the benchmark; `../bench.py` is the command.

grid         cells: what is measured, and how many FLOPs it is
peer         what a candidate is; sdpa, flex, unfused, jax_peers and ours have
             them
timers       how one candidate is timed; rounds: how those of a cell alternate
reference    attention in fp64, and errors against it
worker       a process that prepares a few cells and times them
conductor    starts workers, lets one time at a time, keeps the budget
results      the JSON document: written after every cell, merged, resumed
report, plot the table and the figures, from the JSON document alone
"""
