"""The load: runs in a process of its own, so that it never shares a broker's interpreter."""
