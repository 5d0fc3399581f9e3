"""NCBI's E-utilities: a query to PMIDs, and PMIDs to records, at the pace that NCBI asks for."""
