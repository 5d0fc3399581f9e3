"""Expert feedback of earlier Synergy rounds: judged documents and few-shot examples."""
