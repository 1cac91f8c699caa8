"""A revision, a requirement or a setting → a Target whose processes can be launched."""

from bench.targets.cache import Cache, Entry
from bench.targets.parse import SideSpec, parse_side
from bench.targets.proof import identical, installed_packages, installed_version
from bench.targets.resolve import resolve
from bench.targets.revision import age, default_base, revision_of

__all__ = [
    "Cache",
    "Entry",
    "SideSpec",
    "age",
    "default_base",
    "identical",
    "installed_packages",
    "installed_version",
    "parse_side",
    "resolve",
    "revision_of",
]
