"""STARDTOX on RealToxicityPrompts: toxicity and quality by iteration, and the report."""
