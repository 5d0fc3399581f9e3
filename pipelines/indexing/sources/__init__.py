"""The source files of a build or an update: names, order and copies."""
