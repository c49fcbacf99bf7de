"""The trainable encoder is what the saved model serves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise import Model
from likewise.errors import InputError
from likewise.similarity import RCMD, Cosine
from likewise.training import TrainableEncoder
from tests.conftest import ARCHITECTURES, CORPUS

TEXTS = [*CORPUS, ""]


def embedded(encoder: TrainableEncoder, texts=TEXTS):
    ids, offsets = encoder.tokenize(texts)
    return encoder(torch.from_numpy(ids), offsets)


def shake(encoder: TrainableEncoder) -> None:
    """Other weights, as a training would leave them."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_saved_model_is_the_module_in_evaluation_mode(name, sentence_folder, tmp_path):
    encoder = TrainableEncoder.from_folder(sentence_folder(name))
    shake(encoder)
    encoder.save(tmp_path / "saved")
    model = Model.load(tmp_path / "saved")
    with torch.no_grad():
        found = embedded(encoder)
    assert np.abs(found.tokens.numpy() - model.embed(TEXTS).tokens).max() < 1e-5
    assert np.abs(found.pooled().numpy() - model.encode(TEXTS)).max() < 1e-5


@pytest.mark.parametrize("projection", ["linear", "mlp"])
@pytest.mark.parametrize("keep", [True, False])
def test_projections_are_saved(projection, keep, sentence_folder, tmp_path):
    encoder = TrainableEncoder.from_folder(sentence_folder(pooling="cls"), projection=projection, keep_projection=keep)
    shake(encoder)
    encoder.save(tmp_path / "saved", similarity="rcmd")
    model = Model.load(tmp_path / "saved")
    assert model.similarity.name == "rcmd"
    with torch.no_grad():
        assert np.abs(embedded(encoder).pooled().numpy() - model.encode(TEXTS)).max() < 1e-5
    other = TrainableEncoder.from_folder(sentence_folder(pooling="cls"), projection=projection, keep_projection=keep)
    other.read(tmp_path / "saved")
    with torch.no_grad():
        assert torch.equal(embedded(encoder).pooled(), embedded(other).pooled())


def test_a_token_level_model(checkpoint, tmp_path):
    encoder = TrainableEncoder.from_folder(checkpoint(), pooling="none")
    encoder.save(tmp_path / "saved")
    model = Model.load(tmp_path / "saved")
    assert model.similarity.name == "rcmd"
    with torch.no_grad():
        assert np.abs(embedded(encoder).tokens.numpy() - model.embed(TEXTS).tokens).max() < 1e-5
    encoder.check(RCMD())
    with pytest.raises(InputError, match="without pooling"):
        encoder.check(Cosine())


def test_sentence_transformers_reads_a_trained_model(mean_folder, tmp_path):
    from sentence_transformers import SentenceTransformer

    encoder = TrainableEncoder.from_folder(mean_folder)
    shake(encoder)
    encoder.save(tmp_path / "saved")
    theirs = SentenceTransformer(str(tmp_path / "saved"), device="cpu").encode(TEXTS)
    with torch.no_grad():
        assert np.abs(embedded(encoder).pooled().numpy() - theirs).max() < 1e-5


def test_dropout_is_on_in_training_only(mean_folder):
    encoder = TrainableEncoder.from_folder(mean_folder)
    with torch.no_grad():
        assert torch.equal(embedded(encoder).tokens, embedded(encoder).tokens)
        encoder.train()
        assert not torch.equal(embedded(encoder).tokens, embedded(encoder).tokens)


def test_gradients_reach_every_parameter(mean_folder):
    encoder = TrainableEncoder.from_folder(mean_folder, projection="linear").train()
    embedded(encoder).pooled().square().sum().backward()
    assert [name for name, one in encoder.named_parameters() if one.grad is None or not one.grad.any()] == []


def test_training_may_cut_shorter_than_the_saved_model(mean_folder, tmp_path):
    encoder = TrainableEncoder.from_folder(mean_folder, max_length=8)
    assert np.diff(encoder.tokenize(TEXTS)[1]).max() == 8
    encoder.save(tmp_path / "saved")
    assert Model.load(tmp_path / "saved").max_length == Model.load(mean_folder).max_length


def test_what_a_model_cannot_be_trained_on(sentence_folder, checkpoint, edit_json, tmp_path):
    from sentence_transformers.sentence_transformer.modules import Dense

    sigmoid = sentence_folder(modules=[Dense(32, 8, activation_function=torch.nn.Sigmoid())])
    with pytest.raises(InputError, match="pooled vectors only"):
        TrainableEncoder.from_folder(sigmoid).check(RCMD())
    TrainableEncoder.from_folder(sigmoid).check(Cosine())
    with pytest.raises(InputError, match="'mlp' stands on the pooled vector"):
        TrainableEncoder.from_folder(checkpoint(), pooling="cls", projection="mlp").check(RCMD())
    TrainableEncoder.from_folder(checkpoint(), pooling="cls").check(RCMD())


def test_another_family_is_refused(mean_copy, edit_json):
    edit_json(mean_copy / "config.json", model_type="gpt2")
    with pytest.raises(InputError, match="not of the BERT family"):
        TrainableEncoder.from_folder(mean_copy)


def test_skipped_tokens_are_skipped(checkpoint, edit_json, tmp_path):
    encoder = TrainableEncoder.from_folder(checkpoint(), pooling="none")
    encoder.save(tmp_path / "saved")
    mask = next((tmp_path / "saved").glob("*_MultiVectorMask"))
    edit_json(mask / "config.json", skiplist_words=[".", "the"])
    with torch.no_grad():
        found = embedded(TrainableEncoder.from_folder(tmp_path / "saved"))
    served = Model.load(tmp_path / "saved").embed(TEXTS)
    np.testing.assert_array_equal(found.offsets, served.offsets)
    assert np.abs(found.tokens.numpy() - served.tokens).max() < 1e-5
    assert len(found.tokens) < len(encoder.tokenize(TEXTS)[0])
