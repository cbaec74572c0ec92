"""WordCount and Top-N, from the Dr-Stream paper."""
