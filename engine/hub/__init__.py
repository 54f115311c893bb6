"""The Hugging Face Hub: metadata through `huggingface_hub`, bytes through one range client.

In the order data walks through: `connection` (endpoint, token, patience) -> `repo` (what a repo holds) -> `ranges`
(bytes) -> `extract` (a head out of a model's shards), or -> `transfer` (one file) -> `download` (a repo) into `cache`
(the layout that all programs share). Every refusal ends in a `HubError` that says what to do.
"""
