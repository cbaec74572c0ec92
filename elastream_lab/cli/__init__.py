"""Commands of the laboratory, one file each. `elastream` finds them through entry points."""
