"""The inspector: recorded episodes of a run on one HTML page that explains every action."""
