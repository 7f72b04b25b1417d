"""Pages that people look at: reports and the dashboard."""
