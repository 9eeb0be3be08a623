"""SP7xx: ONNX models. Each row of 71x to 75x is a rule of ONNX's sharding formalism, whose id opens the message."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, Severity

NO_ONNX = Code(
    "SP701",
    "reading an ONNX model needs the package onnx, which is not installed",
    "install it with `pip install 'shardpass[onnx]'`",
    explanation="The package `onnx` holds the definition of the file format. shardpass imports it only for models.",
)
NOT_A_MODEL = Code(
    "SP702",
    "this is not an ONNX model: {reason}",
    "give a file that onnx.save wrote (a ModelProto); `onnx.checker.check_model` says more about a damaged one",
    explanation="The file does not parse as the protobuf message ModelProto, or the message holds no graph.",
)
OLD_IR = Code(
    "SP703",
    "the model has IR version {found} and multi-device annotations, which exist from version 11 on",
    "save the model with ir_version = 11 or later",
    explanation="Readers of older IR versions ignore the fields `configuration` and `device_configurations`. Models of "
    "older IR versions that have none are read.",
)
NO_CONFIGURATION = Code(
    "SP704",
    "the model has no device configuration, so there is nothing to check",
    "add a DeviceConfigurationProto to the model, and device_configurations to its nodes",
    severity=Severity.REMARK,
    explanation="A model says in `configuration` on how many devices it may run.",
)
UNKNOWN_SHAPE = Code(
    "SP705",
    "{node}: the rank of '{tensor}' is not known, so the rules of {op} cannot be checked",
    "run onnx.shape_inference.infer_shapes on the model, or add value_info for the tensor",
    severity=Severity.WARNING,
    explanation="The rules speak of axes. Without the rank of a tensor it is not known which axes meet.",
)
NO_BRIDGE = Code(
    "SP706",
    "{node}: {op} cannot be written in StableHLO: {reason}",
    "give symbolic sizes with --dim, and inputs that shapes are read from with --constant; else replace the node by "
    "other ops (docs/reference/onnx_coverage.md lists those that cannot be written)",
    explanation="The bridge from ONNX to StableHLO needs a kernel for the op, or a body that ONNX defines for it, and "
    "static shapes. It writes one configuration.",
)
TOO_FEW_INPUTS = Code(
    "SP707",
    "{node}: {op} needs at least {least} inputs and has {count}",
    "give the node all its inputs; `onnx.checker.check_model` says more about a damaged model",
    explanation="Example: a `MatMul` of one matrix. The rules of the op speak of inputs that the node lacks.",
)
CONVERTED = Code(
    "SP708",
    "the model is of opset {opset} and was converted to opset {target}",
    "export the model at opset {target} or later to be without the conversion",
    severity=Severity.REMARK,
    explanation="The rules and the bridge know the ops of opset 13 and later. `onnx.version_converter` brings older "
    "models there; names of values stay, and so do annotations.",
)
BAD_BINDING = Code(
    "SP709",
    "{reason}",
    "give a name that the model has ({known}), and a value that fits",
    explanation="`--dim N=8` gives the symbolic dimension N of the model's inputs a size, and `--constant axes=[0]` "
    "makes an input a constant of the model.",
)
NOT_CONVERTED = Code(
    "SP710",
    "the model is of opset {opset}, and onnx cannot convert it to opset {target}: {reason}",
    "export the model at opset {target} or later",
    explanation="`onnx.version_converter` has no adapter for some op of the model, or finds the model invalid.",
)

CONFIGURATION = Code(
    "SP711",
    "ONNX-S1: {where}: {reason}",
    "name one of the model's configurations ({known}), each of which has its own name",
    explanation="`configuration_id` of a node must be the name of a DeviceConfigurationProto of the model.",
)
TENSOR = Code(
    "SP712",
    "ONNX-S2: {node}: {reason}",
    "give one spec for each input or output of the node that needs one: {known}",
    explanation="A sharding spec of a node is about one of that node's own inputs or outputs.",
)
AXIS = Code(
    "SP713",
    "ONNX-S3: {node}: the spec of '{tensor}' {reason}",
    "list each axis at most once, in [-r, r-1] for a tensor of rank r",
    explanation="Example: axis 2 of a matrix. Axes 1 and -1 of a matrix are the same one.",
)
SHARD_COUNT = Code(
    "SP714",
    "ONNX-S4: {node}: the spec of '{tensor}' makes {shards} shards but lists {devices} devices",
    "list one device, or one key of a device group, for each shard, in row-major order of the split axes",
    explanation="Example: two axes in two shards each, and a list of two devices.",
)
DEVICE = Code(
    "SP715",
    "ONNX-S5: {where}: {reason}",
    "name devices 0 to {last}, or keys of index_to_device_group_map, whose groups hold such devices",
    explanation="An entry of `device` that is a key of the map stands for the group there; all others are devices.",
)
SHARDS = Code(
    "SP716",
    "ONNX-S6: {node}: axis {axis} of '{tensor}' {reason}",
    "give num_shards of at least 1, and the sizes that the tensor has",
    explanation="`num_shards` must be a positive constant. Sizes in the spec must agree with those of the tensor.",
)
UNEVEN_SHARDS = Code(
    "SP718",
    "ONNX-S6: {node}: axis {axis} of '{tensor}' has size {size}, which {shards} shards do not divide",
    "choose a size that {shards} divides; how the rest is dealt out is up to the backend",
    severity=Severity.WARNING,
    explanation="Uneven splits are allowed, and each backend decides which shards are smaller.",
)
TWO_SHARDS = Code(
    "SP717",
    "ONNX-S7: {node}: device {device} holds {count} different shards of '{tensor}'",
    "give each device one shard, unless the backend is known to take several",
    severity=Severity.WARNING,
    explanation="The text does not say whether a device may hold two shards of one tensor.",
)
BAD_DISTRIBUTED = Code(
    "SP719",
    "{node}: {attribute} cannot be read: {reason}",
    "give each tensor of the node a spec such as RS[0], the shape of its mesh such as [2], and its devices such as "
    "[0, 1]",
    explanation="The distributed ops of ONNX Runtime (com.microsoft) carry shardings as attributes: "
    "`input_shard_specs`, `input_device_mesh_shapes`, `input_device_mesh_elements`, and the same of outputs. `S[k]` "
    "splits an axis of the tensor over axis k of the mesh, and R does not split it.",
)
STAGE = Code(
    "SP726",
    "{node}: its pipeline stage is {stage}: {reason}",
    "give each node a stage of at least 0, and none lower than that of a node whose output it reads",
    severity=Severity.WARNING,
    explanation="`pipeline_stage` is a hint for backends that run parts of a model on different devices one after the "
    "other. A node that reads from a later stage than its own would make the earlier stage wait for the later one.",
)
OTHER_DOMAIN = Code(
    "SP727",
    "{node}: {op} is an op of {domain}, and cannot be written in StableHLO",
    "{hint}",
    explanation="The bridge knows ONNX's own ops and the functions that the model defines. `shardpass check` knows the "
    "shardings of ONNX Runtime's distributed ops, whose tensors are shards; the program needs the whole ones.",
)
RESHARD_AFTER = Code(
    "SP721",
    "ONNX-D4: {node}: the output '{tensor}' is computed as {found} (by {rule}) and asked for as {given}; a device "
    "receives up to {bytes} for that",
    "leave the output's spec out, or write the first one, if the redistribution is not intended",
    severity=Severity.REMARK,
    explanation="The spec of an output may differ from what the inputs imply: the output is redistributed after the "
    "op.",
)
RESHARD_BEFORE = Code(
    "SP722",
    "ONNX-D5: {node}: the input '{tensor}' comes as {found} and is asked for as {given}; a device receives up to "
    "{bytes} for that",
    "leave the input's spec out, or write the first one, if the redistribution is not intended",
    severity=Severity.REMARK,
    explanation="The spec of an input may differ from that at the node that makes the value: it is redistributed "
    "before the op.",
)
REPARTITIONED = Code(
    "SP723",
    "{rule}: {node}: {reason}; '{tensor}' has no spec here, so it is repartitioned to {needed}: a device receives up "
    "to {bytes}",
    "write the spec {needed} for '{tensor}' at this node, or change those of the other inputs",
    severity=Severity.REMARK,
    explanation="An input without a spec takes that of its producer, or is unsharded, and that breaks a rule of the "
    "op. A redistribution before the op settles it. Under `--strict` it is an error, as the documents' rules say.",
)
SOME_DEVICES = Code(
    "SP724",
    "{node}: the spec of '{tensor}' names {named} of {count} devices, or groups of different sizes; in StableHLO "
    "{what}",
    "name all devices in groups of one size, if the copies are not intended",
    severity=Severity.REMARK,
    explanation="StableHLO gives each tile to equally many devices. Devices without a shard get copies where that "
    "comes out even: two shards on two of four devices are on all four then, twice. Else every device gets the whole "
    "tensor.",
)
BAD_GIVEN = Code(
    "SP725",
    "{reason}",
    "give a value of the model and its sharding over the axes of --mesh, as in {hint}",
    explanation="`--sharding 'x=P(\"data\")' --mesh data=4,model=2` gives a model shardings beside its file.",
)
SAME_SPLIT = Code(
    "SP731",
    "ONNX-B1: {node}: {reason}",
    "split axes that meet in the same way, over the same devices, in all inputs",
    explanation="Example: `Add` of two matrices, the first split along its rows and the second along its columns. "
    "Every axis that no input broadcasts must have the same split and the same devices in all inputs.",
)
BROADCAST_AXIS = Code(
    "SP732",
    "ONNX-B2: {node}: {reason}",
    "do not split an axis of size 1, and place the tensor on all devices that the node's inputs name",
    explanation="An axis of size 1 that is broadcast must be there on every device that takes part.",
)
COMPOSITION = Code(
    "SP733",
    "ONNX-B3: {node}: {reason}",
    "place the shards of each input on all devices that compute an output shard from them, with device groups",
    explanation="Example: `Add` of [M,1], in groups {0,1} and {2,3}, and of [1,N], in the same groups: no device "
    "holds both shards that the output shard (0,1) needs. With the groups {0,2} and {1,3} device 1 does.",
)
SAME_CONTRACTION = Code(
    "SP741",
    "ONNX-M2: {node}: {reason}",
    "split the axis that is summed over in the same way, over the same devices, in both inputs",
    explanation="Example: `MatMul` of A, whose columns are split in two, and of B, whose rows are split in four.",
)
UNSUPPORTED = Code(
    "SP751",
    "ONNX-X1: {node}: {op} has no sharding rules in this version of ONNX's formalism, and '{tensor}' is split",
    "give all its inputs and outputs specs that split nothing, or write the op in others that have rules",
    explanation="The formalism lists ops that it does not support: control flow, sequences, recurrent ops, "
    "convolutions, pooling, and some normalizations.",
)
NO_RULE_GIVEN = Code(
    "SP752",
    "ONNX-X2: {node}: {op} is in no group of ONNX's formalism, and '{tensor}' is split: nothing is checked or inferred",
    "write the specs of its outputs{hint}",
    severity=Severity.WARNING,
    explanation="The formalism groups only some of ONNX's ops. `--extended` adds those that evidently belong to a "
    "group, such as Div, Relu and Sqrt.",
)
PROPAGATED = Code(
    "SP753",
    "{rule}: {node}: {op} has no sharding rules in ONNX's formalism; by shardpass's propagation it makes {layouts}",
    "write the specs of its outputs, if they shall be others",
    severity=Severity.REMARK,
    explanation="Under `--propagate` an op that the documents exclude, or list in no group, makes its outputs as "
    "shardpass's own propagation has them.",
)
NO_EVALUATOR = Code(
    "SP761",
    "onnx's reference evaluator cannot run the model: {reason}",
    "run without --check, or give inputs that the model takes with --constant",
    explanation="`shardpass run --check` compares an ONNX model's outputs with those of `onnx.reference`, which fails "
    "on some models, and on indices that lie outside of an array.",
)
