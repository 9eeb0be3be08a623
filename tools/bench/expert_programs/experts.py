"""Expert parallelism: tokens are sent to the devices of their experts, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from tools.bench.expert_programs.form import (
    BF16,
    F32,
    Annotated,
    Axes,
    Constrain,
    Formula,
    JaxForm,
    P,
    array,
    exchanged,
    summed,
)
from tools.bench.expert_programs.layers import mean_square


@dataclass(frozen=True)
class Experts(JaxForm):
    """A layer of experts of the sizes of Mixtral 8x7B's, one a device, each token to one expert; with gradients.

    ``groups`` of tokens, one a device, have places for so many tokens at each expert (``capacity``).
    """

    source = (
        "Lepikhin et al., GShard, arXiv:2006.16668, section 3.2: an all_to_all to the experts and one back, forward "
        "and backward; Fedus et al., Switch Transformer, arXiv:2101.03961, section 2.2: one expert a token"
    )
    devices: int = 8
    tokens: int = 4096
    capacity: int = 640
    model: int = 4096
    hidden: int = 14336

    @property
    def axes(self) -> Axes:
        return (("expert", self.devices),)

    def program(self, constrain: Constrain) -> Annotated:
        """``g`` groups, ``t`` tokens, ``e`` experts, ``c`` places, ``m`` and ``h`` the widths."""

        def routed(gate: Any, x: Any) -> tuple[Any, Any]:
            """To which place of which expert each token goes, and by how much its result counts."""
            chances = jax.nn.softmax(jnp.einsum("gtm,me->gte", x.astype(jnp.float32), gate), -1)
            chosen = jax.nn.one_hot(jnp.argmax(chances, -1), self.devices, dtype=jnp.int32)
            place = jnp.sum((jnp.cumsum(chosen, 1) - 1) * chosen, -1)
            spot = jax.nn.one_hot(place, self.capacity, dtype=x.dtype)
            sent = chosen.astype(x.dtype)[..., None] * spot[:, :, None, :]
            return sent, sent * jnp.sum(chances * chosen, -1)[..., None, None].astype(x.dtype)

        def loss(weights: Any, x: Any) -> Any:
            gate, up, down = weights
            send, bring = (constrain(one, "expert", None, None, None) for one in routed(gate, x))
            inputs = constrain(jnp.einsum("gtec,gtm->gecm", send, x), "expert", None, None, None)
            inputs = constrain(inputs, None, "expert", None, None)
            hidden = constrain(jax.nn.silu(jnp.einsum("gecm,emh->gech", inputs, up)), None, "expert", None, None)
            outputs = constrain(jnp.einsum("gech,ehm->gecm", hidden, down), None, "expert", None, None)
            outputs = constrain(outputs, "expert", None, None, None)
            return mean_square(constrain(jnp.einsum("gtec,gecm->gtm", bring, outputs), "expert", None, None))

        weights = (
            array(self.model, self.devices, dtype=jnp.float32),
            array(self.devices, self.model, self.hidden),
            array(self.devices, self.hidden, self.model),
        )
        split = (P(), P("expert", None, None), P("expert", None, None))
        x = array(self.devices, self.tokens, self.model)
        specs = (split, P("expert"))
        return Annotated(jax.grad(loss, argnums=(0, 1)), (weights, x), specs, specs)

    def formula(self) -> Formula:
        """And the gradient of the gate, of which every device has a copy."""
        tile = BF16 * self.devices * self.capacity * self.model  # of one group: a block for each expert
        return Formula(4 * exchanged(tile, self.devices) + summed(F32 * self.model * self.devices, self.devices))
