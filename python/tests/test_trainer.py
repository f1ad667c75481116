"""The Trainer of transformers: resumed and checkpointed training ends with the same weights."""

import logging

import pytest
import torch
import train

from repops.torch import reproducible

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
DATA = [{"input_ids": t, "labels": t} for t in (torch.arange(i, i + 12) % 50 for i in range(40))]


def weights(folder, resume=None, checkpointing=False):
    with reproducible():
        torch.manual_seed(1)
        config = transformers.GPT2Config(
            n_layer=1, n_embd=16, n_head=2, vocab_size=50, n_positions=16, eos_token_id=0
        )
        model = transformers.GPT2LMHeadModel(config)
        arguments = transformers.TrainingArguments(
            str(folder),
            max_steps=4,
            save_steps=2,
            per_device_train_batch_size=2,
            gradient_accumulation_steps=2,
            gradient_checkpointing=checkpointing,
            lr_scheduler_type="cosine",
            optim="adamw_torch_fused",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = transformers.Trainer(model, arguments, train_dataset=DATA)
        trainer.train(resume_from_checkpoint=resume)
    return train.digest(model)


def test_a_trainer_that_resumes_or_checkpoints_has_the_same_weights(tmp_path):
    logging.disable(logging.WARNING)
    whole = weights(tmp_path / "a")
    assert weights(tmp_path / "b", str(tmp_path / "a/checkpoint-2")) == whole
    assert weights(tmp_path / "c", checkpointing=True) == whole
