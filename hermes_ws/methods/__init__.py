"""What a request does: one file per topic, one short handler per declared method."""
