"""Find the questions nearest to a query, and say why the best one matches."""

from pathlib import Path

import numpy as np

from likewise import Model

questions = Path(__file__).with_name("questions.txt").read_text(encoding="utf-8").splitlines()
query = "The coffee maker drips on the table."

model = Model.load(similarity="rcmd")
scores = model.matrix([query], questions)[0]
for i in np.argsort(-scores)[:3]:
    print(f"{scores[i]:.4f}  {questions[i]}")
print(model.explain(query, questions[int(scores.argmax())]).to_text())
