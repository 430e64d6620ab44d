"""Boards and charts as SVG and PNG, and HTML pages."""
