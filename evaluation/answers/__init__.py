"""Measures of answers as texts: BLEU, and RAGAS and BERTScore, which need a model."""
