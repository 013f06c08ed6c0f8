"""The documentation: pages, and what makes a site, pictures and a release of them."""
