"""Run folders into tables, figures and pages. Reads files; imports nothing that trains."""
