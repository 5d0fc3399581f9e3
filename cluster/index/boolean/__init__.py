"""Boolean search: expressions of field terms, and the citations of an index that match them."""
