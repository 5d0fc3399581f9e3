"""Classification of citations by study design and by the subjects studied."""
