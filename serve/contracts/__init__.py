"""Contracts between the layers: requests, events, stage calls and the forms of the HTTP API."""
