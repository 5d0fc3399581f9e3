"""Online search in PubMed through NCBI's E-utilities."""
