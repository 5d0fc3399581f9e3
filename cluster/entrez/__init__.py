"""Client for NCBI's E-utilities: searching PubMed and fetching records, with a rate limit."""
