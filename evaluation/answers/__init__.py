"""Measures of ideal answers that need a model: RAGAS, BERTScore; and BLEU."""
