"""Classification of tweets, from the PSPS paper."""
