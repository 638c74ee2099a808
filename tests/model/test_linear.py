from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from anaphora.model import linear as module
from anaphora.model.linear import Linear, has_faster_kernel, linear


def has_operator() -> bool:
    try:
        module.onednn_product(torch.ones(2, 3), torch.ones(4, 3), None)
    except (AttributeError, RuntimeError, NotImplementedError):
        return False
    return True


@pytest.fixture
def faster(monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_operator():
        pytest.skip("this torch has no oneDNN operator")
    monkeypatch.setattr(module, "has_faster_kernel", lambda: True)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear the cached test of the kernel before and after a test."""
    has_faster_kernel.cache_clear()
    monkeypatch.setattr(module, "has_faster_kernel", has_faster_kernel)


def values_and_gradients(
    multiply: Callable[..., Tensor], vectors: Tensor, weight: Tensor, bias: Tensor | None
) -> list[Tensor]:
    leaves = [each.clone().requires_grad_() for each in (vectors, weight, bias) if each is not None]
    output = multiply(*leaves, *([None] if bias is None else []))
    output.square().sum().backward()  # type: ignore[no-untyped-call]
    return [output.detach(), *(leaf.grad for leaf in leaves if leaf.grad is not None)]


@pytest.mark.usefixtures("faster")
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("shape", [(40, 24), (3, 17, 24), (2, 3, 8, 24)], ids=str)
def test_values_and_gradients_are_those_of_torch(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    vectors, weight = torch.randn(*shape), torch.randn(56, 24)
    added = torch.randn(56) if bias else None
    ours, torchs = (values_and_gradients(each, vectors, weight, added) for each in (linear, functional.linear))
    assert len(ours) == len(torchs) == 3 + bias
    for one, other in zip(ours, torchs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-3)


@pytest.mark.usefixtures("faster")
def test_a_tensor_that_lies_crosswise_is_multiplied_as_it_reads() -> None:
    torch.manual_seed(0)
    vectors, weight = torch.randn(24, 40).t(), torch.randn(24, 56).t()
    torch.testing.assert_close(linear(vectors, weight, None), vectors @ weight.t(), rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("faster")
def test_a_frozen_weight_gets_no_gradient() -> None:
    layer = Linear(24, 56)
    layer.weight.requires_grad_(False)
    layer(torch.randn(40, 24, requires_grad=True)).sum().backward()
    assert layer.weight.grad is None
    assert layer.bias.grad is not None


@pytest.mark.usefixtures("faster")
def test_few_rows_other_types_and_autocast_are_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Tensor:
        raise AssertionError("the other kernel was taken")

    monkeypatch.setattr(module, "onednn_product", refuse)
    layer = Linear(24, 56)
    with pytest.raises(AssertionError):
        layer(torch.randn(40, 24))
    assert layer(torch.randn(4, 24)).shape == (4, 56)
    assert layer(torch.randn(0, 24)).shape == (0, 56)
    assert layer.double()(torch.randn(40, 24, dtype=torch.float64)).dtype == torch.float64
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer.float()(torch.randn(40, 24)).dtype == torch.bfloat16


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("missing", ["processor", "operator", "right result"])
def test_without_a_kernel_that_is_faster_and_right_torch_multiplies(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(module, "_is_amd", lambda: missing != "processor")

    def broken(vectors: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if missing == "operator":
            raise NotImplementedError
        return torch.zeros(len(vectors), len(weight))

    monkeypatch.setattr(module, "onednn_product", broken)
    torch.manual_seed(0)
    vectors, weight, bias = torch.randn(40, 24), torch.randn(56, 24), torch.randn(56)
    assert torch.equal(linear(vectors, weight, bias), functional.linear(vectors, weight, bias))
    has_faster_kernel.cache_clear()
