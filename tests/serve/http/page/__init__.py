"""Tests of the page. A package, so that pytest ends their shared fixtures after them."""
