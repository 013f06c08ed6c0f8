"""What is checked about dependencies: their licences, and what Parley says where an extra is missing."""
