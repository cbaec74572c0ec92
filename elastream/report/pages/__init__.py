"""Pages and pictures of a run: a report enters; HTML and PNG files leave."""
