"""To be drawn."""
SOURCE = "history.csv"
PARAMETERS = {"settings": {"default": {}}, "problem": {"default": ""}, "early_steps": {"default": []}, "expectations": {"default": []}, "models": {"default": {}}, "problems": {"default": {}}}
