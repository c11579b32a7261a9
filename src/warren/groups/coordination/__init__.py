"""How the members of a group hear of each other: one file a coordinator, one contract."""
