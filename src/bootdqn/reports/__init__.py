"""Tables, figures and pages from run directories. Reads files only: nothing that trains is imported."""

from bootdqn.reports.run_table import load_metrics, load_results

__all__ = ["load_metrics", "load_results"]
