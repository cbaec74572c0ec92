"""Find an application by name, `file.py:name` or `module:name`, and set its options."""
