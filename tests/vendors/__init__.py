"""The vendors' servers, played on loopback: each as strict as the vendor documents its own to be.

    with standins()["openai"](kind="thinking") as server:
        client = model(server.name())

One module per vendor, each with a class `Standin`; `base` has what they share. `python -m tests.vendors` runs every
study against every one of them.
"""
