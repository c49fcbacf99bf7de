"""Score two sentences, and see which words made the score."""

from likewise import Model

model = Model.load()
why = model.explain("Somebody is riding a horse.", "A man rides a horse.", similarity="rcmd")
print(why.to_text())
print("score", why.score, "= sum of the parts", why.contributions.sum())

words = why.words
for pair in why.alignments:
    print(f"{words.a[pair.a].text:>10} ~ {words.b[pair.b].text:<10} adds {pair.contribution:.4f}")
