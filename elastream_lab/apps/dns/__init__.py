"""Classification of DNS queries, from the PSPS paper."""
