"""nanodo's Trainer over 8 devices: two layers, fake tokens."""

import jax
import jax.numpy as jnp
from jax.experimental import mesh_utils
from jax.sharding import Mesh
from nanodo import model_factory, train
from nanodo.configs import default

c = default.get_config()
c.batch_size = 64
c.model.N, c.model.L, c.model.D, c.model.H, c.model.F = 2, 128, 256, 4, 1024
with c.unlocked():
    c.opt.b1, c.opt.b2, c.opt.eps = 0.9, 0.98, 1e-9
mesh = Mesh(mesh_utils.create_device_mesh((jax.device_count(),)), ("data",))
model, get_loss_fn = model_factory.get_model_and_loss(c, 32_000)
shardings, state = train._init_train_state(c, model, rng=jax.random.PRNGKey(0), mesh=mesh)
trainer = train.Trainer(c=c, state=state, mesh=mesh, shardings=shardings, get_loss_fn=get_loss_fn)
trainer.do_step(1, jnp.ones((c.batch_size, c.model.L), jnp.int32))
