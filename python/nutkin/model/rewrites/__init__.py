"""Rewrites: named passes over a checked program that leave its log density as it is and make its gradient cheaper.

A pass replaces steps by cheaper ones where the structure and the shapes of a model allow it. What it does never depends
on the values of data, so that fresh data of the same shapes find the same program. Each can be switched off.
"""

from nutkin.model.rewrites.registry import REWRITES as REWRITES
from nutkin.model.rewrites.registry import check_names as check_names
from nutkin.model.rewrites.registry import rewrite as rewrite
