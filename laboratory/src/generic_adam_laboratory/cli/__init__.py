"""The laboratory's commands, which generic-adam finds by their entry points."""
