"""Staging: parse, split and embed sources, and plan the shards from them."""
