"""Tables, figures and pages from run directories. Reads files only: nothing that trains is imported."""

from bootdqn.reports.load import load_metrics, load_runs

__all__ = ["load_metrics", "load_runs"]
