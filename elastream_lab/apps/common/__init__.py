"""Parts that several applications share."""
