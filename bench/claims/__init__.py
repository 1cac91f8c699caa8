"""Figures stated in the literature, and what this machine's stored runs say of each.

words: what a claim is · document: claims.toml → claims · judging: the rule of verdicts, pure ·
evidence: stored runs → readings → answers
"""
