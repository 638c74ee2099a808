from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from anaphora.settings.training import Optimizer
from anaphora.training import optimizer as module
from anaphora.training.optimizer import Muon, build_optimizer, learning_rate_schedule, orthogonalise


@pytest.mark.parametrize(
    ("decay", "halfway", "last"),
    [("linear", 0.5, 0.0), ("cosine", 0.5, 0.0), ("cooldown", 1.0, 0.0), ("constant", 1.0, 1.0)],
)
def test_the_learning_rate_warms_up_and_then_takes_its_shape(decay: str, halfway: float, last: float) -> None:
    share = learning_rate_schedule(Optimizer(steps=120, warmup=1 / 6, decay=decay))
    assert [share(step) for step in (0, 9, 19)] == pytest.approx([0.05, 0.5, 1.0])
    assert share(20) == pytest.approx(1.0)
    assert share(70) == pytest.approx(halfway)
    assert share(120) == pytest.approx(last)


def test_a_cosine_is_above_a_line_first_and_below_it_later() -> None:
    line, wave = (
        learning_rate_schedule(Optimizer(steps=100, warmup=0.0, decay=decay)) for decay in ("linear", "cosine")
    )
    assert line(0) == wave(0) == 1.0  # without warm-up, the first step has the whole rate
    assert wave(25) > line(25)
    assert wave(75) < line(75)
    # The one step of warm-up leaves 99 to decay over; at step 25 there are 75 of them left.
    assert wave(25) == pytest.approx(0.5 + 0.5 * math.cos(math.pi * 24 / 99), abs=0.01)


def test_a_cooldown_is_a_line_over_the_last_30_percent_of_the_steps_after_the_warm_up() -> None:
    share = learning_rate_schedule(Optimizer(steps=120, warmup=1 / 6, decay="cooldown"))
    assert [share(step) for step in (90, 105, 117)] == pytest.approx([1.0, 0.5, 0.1])


def test_weights_decay_on_matrices_alone() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
    optimizer = build_optimizer(module, Optimizer(weight_decay=0.5, beta2=0.9))
    decays = {id(weight): group["weight_decay"] for group in optimizer.param_groups for weight in group["params"]}
    assert {name: decays[id(weight)] for name, weight in module.named_parameters()} == {
        "0.weight": 0.5,
        "0.bias": 0.0,
        "1.weight": 0.0,
        "1.bias": 0.0,
    }
    assert optimizer.param_groups[0]["betas"] == (0.9, 0.9)


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.tokens = nn.Embedding(5, 8)
        self.blocks = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 16), nn.Linear(16, 8), nn.LayerNorm(8)])

    @property
    def wide(self) -> nn.Linear:
        block = self.blocks[1]
        assert isinstance(block, nn.Linear)
        return block


def test_muon_takes_the_matrices_of_the_blocks_and_nothing_else() -> None:
    encoder = Encoder()
    optimizer = build_optimizer(encoder, Optimizer(matrices="muon"))
    names = {id(weight): name for name, weight in encoder.named_parameters()}
    orthogonal = {
        names[id(weight)] for group in optimizer.param_groups if group["orthogonal"] for weight in group["params"]
    }
    assert orthogonal == {"blocks.0.weight", "blocks.1.weight", "blocks.2.weight"}
    held = [id(weight) for group in optimizer.param_groups for weight in group["params"]]
    assert sorted(held) == sorted(names)


def test_frozen_weights_are_left_out() -> None:
    encoder = Encoder()
    encoder.wide.weight.requires_grad_(False)
    for matrices in ("adamw", "muon"):
        optimizer = build_optimizer(encoder, Optimizer(matrices=matrices))
        held = {id(weight) for group in optimizer.param_groups for weight in group["params"]}
        assert id(encoder.wide.weight) not in held
        assert len(held) == len(list(encoder.parameters())) - 1


@pytest.mark.parametrize("shape", [(4, 32, 32), (2, 64, 32), (3, 32, 64)])
def test_orthogonalising_keeps_the_directions_and_evens_the_strengths(shape: tuple[int, int, int]) -> None:
    torch.manual_seed(1)
    matrices = torch.randn(shape)
    left, strengths, right = torch.linalg.svd(matrices, full_matrices=False)
    orthogonal = orthogonalise(matrices, steps=6)
    # The same singular vectors: in their basis what was made is diagonal.
    inside = left.mT @ orthogonal @ right.mT
    strong = inside.diagonal(dim1=1, dim2=2)
    assert (inside - torch.diag_embed(strong)).abs().max() < 1e-4
    usual = strengths / strengths.amax(dim=1, keepdim=True) > 0.1
    assert strong[usual].min() > 0.5 and strong[usual].max() < 1.35


@pytest.mark.parametrize("shape", [(2, 256, 256), (1, 512, 256), (2, 256, 320)])
def test_large_matrices_are_multiplied_one_by_one_by_onednn_with_the_same_result(
    shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(2)
    matrices = torch.randn(shape)
    monkeypatch.setattr(module, "has_faster_kernel", lambda: False)
    expected = orthogonalise(matrices)
    sizes = []

    def product(left: Tensor, right: Tensor) -> Tensor:
        sizes.append(left.shape)
        return left @ right.T

    monkeypatch.setattr(module, "has_faster_kernel", lambda: True)
    monkeypatch.setattr(module, "onednn_product", product)
    torch.testing.assert_close(orthogonalise(matrices), expected, rtol=1e-4, atol=1e-5)
    assert len(sizes) == 3 * 3 * len(matrices)
    orthogonalise(matrices[:, :255])
    orthogonalise(matrices, torch.bfloat16)
    assert len(sizes) == 3 * 3 * len(matrices)


def test_muon_multiplies_in_the_type_that_training_has() -> None:
    moved = {}
    for products in (torch.float32, torch.bfloat16):
        encoder = Encoder()
        torch.manual_seed(0)
        encoder.wide.weight.grad = torch.randn(16, 8)
        before = encoder.wide.weight.detach().clone()
        build_optimizer(encoder, Optimizer(matrices="muon", weight_decay=0.0), products).step()
        moved[products] = encoder.wide.weight.detach() - before
        assert moved[products].dtype == torch.float32
    assert not torch.equal(moved[torch.float32], moved[torch.bfloat16])
    torch.testing.assert_close(moved[torch.float32], moved[torch.bfloat16], rtol=0.1, atol=2e-5)


def test_muon_is_adamw_for_the_rest() -> None:
    ours, theirs = Encoder(), Encoder()
    muon = build_optimizer(ours, Optimizer(matrices="muon", learning_rate=0.01))
    adamw = build_optimizer(theirs, Optimizer(matrices="adamw", learning_rate=0.01))
    for encoder, optimizer in ((ours, muon), (theirs, adamw)):
        for step in range(3):
            torch.manual_seed(step)
            for weight in encoder.parameters():
                weight.grad = torch.randn_like(weight)
            optimizer.step()
    theirs_by_name = dict(theirs.named_parameters())
    for name, weight in ours.named_parameters():
        inside = name.startswith("blocks") and weight.dim() == 2
        assert torch.equal(weight, theirs_by_name[name]) != inside, name


def test_a_step_of_muon_by_hand() -> None:
    encoder = Encoder()
    before = encoder.wide.weight.detach().clone()
    gradient = torch.randn(16, 8)
    encoder.wide.weight.grad = gradient.clone()
    optimizer = build_optimizer(encoder, Optimizer(matrices="muon", learning_rate=0.1, weight_decay=0.5))
    assert isinstance(optimizer, Muon)
    optimizer.step()
    # The first momentum is 0.05 gradient, and looking ahead 0.05 of the gradient and 0.95 of that: a positive multiple.
    expected = before * (1 - 0.1 * 0.5) - 0.1 * 0.2 * 4 * orthogonalise(gradient[None])[0]
    assert torch.allclose(encoder.wide.weight, expected, atol=1e-5)


def test_the_matrices_have_a_learning_rate_of_their_own() -> None:
    moved = []
    for rate in (None, 0.2):
        encoder = Encoder()
        before = [weight.detach().clone() for weight in (encoder.wide.weight, encoder.tokens.weight)]
        optimizer = build_optimizer(encoder, Optimizer(matrices="muon", learning_rate=0.1, matrices_learning_rate=rate))
        for weight in encoder.parameters():
            weight.grad = torch.ones_like(weight)
        optimizer.step()
        after = (encoder.wide.weight, encoder.tokens.weight)
        moved.append([(one - other).norm().item() for one, other in zip(before, after, strict=True)])
    assert moved[1][0] == pytest.approx(2 * moved[0][0], rel=1e-2)
    assert moved[1][1] == pytest.approx(moved[0][1])


def test_a_closure_sees_every_group() -> None:
    """Lightning zeroes and clips gradients inside the closure, so a missing group would accumulate its gradients."""
    encoder = Encoder()
    optimizer = build_optimizer(encoder, Optimizer(matrices="muon"))
    for weight in encoder.parameters():
        weight.grad = torch.full_like(weight, 1e6)

    def closure() -> float:
        optimizer.zero_grad()
        assert all(weight.grad is None for weight in encoder.parameters())
        loss = encoder.wide(encoder.tokens(torch.tensor([1, 2]))).square().sum()
        loss.backward()
        return float(loss.detach())

    before = encoder.wide.weight.detach().clone()
    assert optimizer.step(closure) > 0
    assert not torch.equal(before, encoder.wide.weight)


def test_two_steps_of_muon_by_hand_look_ahead() -> None:
    """With Nesterov momentum, the step is along 0.05 g + 0.95 m, not along the momentum m (Jordan et al. 2024)."""
    encoder = Encoder()
    before = encoder.wide.weight.detach().clone()
    first, second = torch.randn(16, 8), torch.randn(16, 8)
    optimizer = build_optimizer(encoder, Optimizer(matrices="muon", learning_rate=0.1, weight_decay=0.0))
    for gradient in (first, second):
        encoder.wide.weight.grad = gradient.clone()
        optimizer.step()
    momentum = 0.95 * (0.05 * first) + 0.05 * second
    steps = orthogonalise(torch.stack((first, 0.05 * second + 0.95 * momentum)))
    torch.testing.assert_close(encoder.wide.weight.detach(), before - 0.1 * 0.2 * 4 * steps.sum(dim=0))
    along_momentum = orthogonalise(torch.stack((first, momentum)))
    assert (steps - along_momentum)[1].abs().max() > 0.01


def test_a_number_is_orthogonalised_by_three_steps_of_the_polynomial() -> None:
    # Jordan et al. 2024: x -> 3.4445 x - 4.775 x ** 3 + 2.0315 x ** 5, from x / |x|; three steps and not their five.
    expected = -1.0
    for _ in range(3):
        expected = 3.4445 * expected - 4.775 * expected**3 + 2.0315 * expected**5
    assert orthogonalise(torch.tensor([[[-7.0]]])).item() == pytest.approx(expected, abs=1e-5)
