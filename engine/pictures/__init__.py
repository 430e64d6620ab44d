"""Boards and charts as SVG and PNG, and pages of HTML around them."""
