"""Language models: run, text_model, estimator, generator."""
