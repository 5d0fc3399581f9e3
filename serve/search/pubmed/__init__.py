"""PubMed online: NCBI's E-utilities as a retriever."""
