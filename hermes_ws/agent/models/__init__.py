"""The models: one small file per provider behind one interface."""
