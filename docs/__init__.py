"""The documentation. Its pages are Markdown; docs/site makes a site of them."""
