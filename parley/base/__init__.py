"""The ground floor: errors, texts, TOML, the home folder, plug-ins and hidden addresses. It imports nothing of ours."""
