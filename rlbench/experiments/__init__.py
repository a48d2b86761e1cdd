"""Measurements that a notebook asks for and that concern whole questions rather than one slot."""
