"""The operator and the modules among PyTorch's tools: opcheck, module samples, compile, export, vmap, pickle, processes."""

import copy
import pickle
import shutil

import pytest
import torch.utils.checkpoint
from torch.nn.utils.parametrizations import weight_norm
from torch.testing._internal.common_modules import module_db
from torch.utils._pytree import tree_leaves

import torch
import unspool.torch as ut
from torch import nn
from torch_modules import NAMES, Tagger, engine_ran, pair, run, train_rank
from unspool.torch import operator

pytestmark = pytest.mark.filterwarnings("ignore")
INFOS = {info.module_cls.__name__: info for info in module_db if info.module_cls in (nn.RNN, nn.GRU, nn.LSTM)}


def samples(name, function, training):
    info = INFOS[name]
    return getattr(info, function)(
        info, device="cpu", dtype=torch.float32, requires_grad=False, training=training
    )


def called(kind, given):
    module = kind(*given.constructor_input.args, **given.constructor_input.kwargs)
    return module(*given.forward_input.args, **given.forward_input.kwargs)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_sample_of_pytorchs_module_tests_gives_its_result(name, training):
    for sample in samples(name, "module_inputs_func", training):
        theirs, ours = pair(name, *sample.constructor_input.args, **sample.constructor_input.kwargs)
        found = []
        for module in (theirs.train(training), ours.train(training)):
            torch.manual_seed(0)
            found.append(tree_leaves(module(*sample.forward_input.args, **sample.forward_input.kwargs)))
        for a, b in zip(*found, strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", NAMES)
def test_every_error_sample_raises_pytorchs_type_and_message(name):
    count = 0
    for sample in samples(name, "module_error_inputs_func", True):
        given = sample.module_error_input
        with pytest.raises(sample.error_type, match=sample.error_regex):
            called(getattr(ut, name), given)
        count += 1
    assert count > 5


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_opcheck_accepts_both_operators(name, packed):
    module = getattr(ut, name)(4, 6)
    x = torch.randn((9, 4) if packed else (5, 3, 4), requires_grad=True)
    sizes = torch.tensor([3, 2, 2, 1, 1]) if packed else None
    h0, s0 = torch.randn(3, 6, requires_grad=True), torch.randn(3, 6) if name == "LSTM" else None
    inputs = (x, h0, s0, *module.parameters(), sizes)
    for reverse in (False, True):
        how = (module.mode, reverse, False)
        torch.library.opcheck(operator.recurrent_layer, (*inputs, *how))
        y, h, s, *tape = (each.detach() for each in operator.recurrent_layer(*inputs, *how))
        above = (torch.randn_like(y), torch.randn_like(h), torch.randn_like(s) if name == "LSTM" else None)
        torch.library.opcheck(
            operator.recurrent_layer_backward, (*above, *inputs, y, *tape, *how, True, True),
            test_utils=("test_schema", "test_faketensor"),
        )  # fmt: skip


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_a_compiled_model_of_any_length_trains_alike():
    plain = Tagger(ut.LSTM)
    model = copy.deepcopy(plain)
    compiled = torch.compile(model, fullgraph=True, dynamic=True)
    for tau in (5, 7):
        x = torch.randint(9, (3, tau))
        for each in (plain, compiled):
            with engine_ran(4, 4):
                nn.functional.cross_entropy(each(x).flatten(0, 1), x.flatten()).backward()
    for a, b in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def test_an_exported_module_takes_any_length():
    module = ut.GRU(4, 6, batch_first=True).eval()
    length = torch.export.Dim("length", min=2, max=1000)
    program = torch.export.export(module, (torch.randn(3, 5, 4),), dynamic_shapes={"input": {1: length}})
    for tau in (2, 17, 300):
        x = torch.randn(3, tau, 4)
        with engine_ran(2):
            assert torch.equal(program.module()(x)[0], module(x)[0])


def test_a_trace_has_pytorchs_operators():
    module, x = ut.LSTM(4, 6), torch.randn(5, 3, 4)
    traced = torch.jit.trace(module, (x,), check_trace=False)
    assert "unspool::" not in str(traced.inlined_graph)
    torch.testing.assert_close(traced(x)[0], module(x)[0])


@pytest.mark.parametrize("name", NAMES)
def test_vmap_over_eight_models_equals_a_loop(name):
    models = [getattr(ut, name)(4, 6, 2, bidirectional=True) for _ in range(8)]
    stacked, _ = torch.func.stack_module_state(models)
    stacked, x = {key: value.detach() for key, value in stacked.items()}, torch.randn(5, 3, 4)

    def call(parameters, x):
        return torch.func.functional_call(models[0], parameters, (x,))[0]

    with engine_ran(8 * 4):
        y = torch.func.vmap(call, (0, None))(stacked, x)
    assert all(torch.equal(y[i], model(x)[0]) for i, model in enumerate(models))
    gradients = torch.func.vmap(torch.func.grad(lambda p, x: call(p, x).sum()), (0, None))(stacked, x)
    for i, model in enumerate(models):
        model(x)[0].sum().backward()
        for key, parameter in model.named_parameters():
            torch.testing.assert_close(gradients[key][i], parameter.grad)


def test_forward_mode_is_pytorchs():
    theirs, ours = pair("GRU", 4, 6)
    x = torch.randn(5, 3, 4)
    found = [
        torch.func.jvp(lambda x, module=module: module(x)[0], (x,), (torch.ones_like(x),))
        for module in (theirs, ours)
    ]
    torch.testing.assert_close(found[0], found[1])


@pytest.mark.parametrize("name", NAMES)
def test_copies_and_pickles_compute_alike_and_exchange_weights(name):
    module, x = getattr(ut, name)(4, 6, 2), torch.randn(5, 3, 4)
    for copied in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        with engine_ran(4):
            assert torch.equal(copied(x)[0], module(x)[0])
    theirs = getattr(nn, name)(4, 6, 2)
    theirs.load_state_dict(module.state_dict())
    assert list(theirs.state_dict()) == list(module.state_dict())
    torch.testing.assert_close(theirs(x)[0], module(x)[0])


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_and_hooks_on_saved_tensors_give_the_same_gradients(reentrant):
    module, x = ut.LSTM(4, 6), torch.randn(5, 3, 4)
    expected = run(module, x)[-4:]
    x.requires_grad_()

    def gradients(y):
        module.zero_grad()
        torch.manual_seed(1)
        y.backward(torch.randn(y.shape), retain_graph=True)
        return [p.grad.clone() for p in module.parameters()]

    plain = gradients(module(x)[0])
    with torch.autograd.graph.save_on_cpu():
        y = module(x)[0]
    both = gradients(y), gradients(y)  # the tape is read twice
    again = gradients(torch.utils.checkpoint.checkpoint(lambda x: module(x)[0], x, use_reentrant=reentrant))
    for found in (*both, again):
        assert all(map(torch.equal, found, plain))
    assert len(expected) == 4


def test_hooks_and_parametrizations_work():
    theirs, ours = pair("LSTM", 4, 6)
    for module in (theirs, ours):
        weight_norm(module, "weight_hh_l0")
    seen = []
    ours.register_forward_hook(lambda *args: seen.append("forward"))
    ours.register_full_backward_hook(lambda *args: seen.append("backward"))
    x = torch.randn(5, 3, 4)
    with engine_ran(1, 1):
        found = run(ours, x)
    for a, b in zip(found, run(theirs, x), strict=True):
        torch.testing.assert_close(a, b)
    assert sorted(set(seen)) == ["backward", "forward"]


def test_two_processes_of_distributed_data_parallel_train_as_one(tmp_path):
    context = torch.multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [
        context.Process(target=train_rank, args=(rank, tmp_path / "rendezvous", results)) for rank in range(2)
    ]
    for process in processes:
        process.start()
    found = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    torch.manual_seed(0)
    model, x = Tagger(ut.GRU), torch.arange(24).reshape(4, 6) % 9
    nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten()).backward()
    for _, backward, gradients in found:
        assert backward == 4
        for a, parameter in zip(gradients, model.parameters(), strict=True):
            torch.testing.assert_close(torch.from_numpy(a), parameter.grad)


class Embedded(torch.utils.data.Dataset):
    """Each item is the output of a module, computed in the worker."""

    def __init__(self):
        self.module = ut.GRU(4, 6)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        with torch.no_grad():
            return self.module(torch.full((5, 4), float(index)))[0]


def test_workers_of_a_data_loader_compute_after_a_fork():
    data = Embedded()
    torch.set_num_threads(2)
    ut.GRU(64, 128)(torch.randn(20, 64, 64))  # the pool of threads has started
    loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=2, multiprocessing_context="fork")
    assert torch.equal(torch.cat(list(loader)), torch.stack([data[i] for i in range(4)]))
