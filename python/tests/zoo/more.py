"""Other models: hand-written GPTs, graph networks, reinforcement learning, textbook models."""

import torch
import torch.nn.functional as F
from torch import nn

from .base import ids, model, numbers, pixels
from .text import TEXT


class _Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        parts = [p.unflatten(2, (self.heads, -1)) for p in self.qkv(self.before(x)).chunk(3, 2)]
        q, k, v = (p.transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.0)
        x = x + self.drop(self.out(y.transpose(1, 2).flatten(2)))
        return x + self.drop(self.narrow(F.gelu(self.wide(self.between(x)))))


@model()
def nanogpt():
    """A hand-written decoder with tied weights."""
    own = nn.ModuleDict(
        {
            "words": nn.Embedding(96, 64),
            "places": nn.Embedding(32, 64),
            "blocks": nn.Sequential(_Block(64, 4), _Block(64, 4)),
            "norm": nn.LayerNorm(64),
            "head": nn.Linear(64, 96, bias=False),
        }
    )
    own.head.weight = own.words.weight
    nn.init.normal_(own.words.weight, std=0.02)

    def loss(i):
        x = own.words(ids(4, 32, seed=i)) + own.places(torch.arange(32))
        y = own.head(own.norm(own.blocks(x)))
        return F.cross_entropy(y.flatten(0, 1), ids(4, 32, seed=i + 50).flatten())

    return own, loss


@model()
def linear_regression():
    own = nn.Linear(8, 1)
    return own, lambda i: F.mse_loss(own(numbers(16, 8, seed=i)), numbers(16, 1, seed=i + 9))


@model()
def kan_sin():
    """Sines between layers, as in Kolmogorov-Arnold networks."""
    own = nn.ModuleList([nn.Linear(8, 16), nn.Linear(16, 1)])

    def loss(i):
        y = own[1](torch.sin(own[0](numbers(16, 8, seed=i))))
        return F.mse_loss(y, numbers(16, 1, seed=i + 9))

    return own, loss


@model()
def conv_vae():
    own = nn.ModuleList(
        [
            nn.Conv2d(3, 8, 4, 2, 1),
            nn.Linear(8 * 256, 8),
            nn.Linear(4, 8 * 256),
            nn.ConvTranspose2d(8, 3, 4, 2, 1),
        ]
    )

    def loss(i):
        x = pixels(i)
        mean, log = own[1](own[0](x).relu().flatten(1)).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (0.5 * log).exp()
        y = own[3](own[2](z).view(-1, 8, 16, 16).relu())
        return F.mse_loss(y, x) - 0.5 * (1 + log - mean**2 - log.exp()).mean()

    return own, loss


# ---- reinforcement learning ----


def _policy():
    return nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 4))


@model()
def dqn():
    own, target = _policy(), _policy()

    def loss(i):
        reward, done = numbers(16, seed=i), ids(16, seed=i, low=0, high=2).float()
        with torch.no_grad():
            best = target(numbers(16, 6, seed=i + 1)).max(1)[0]
        taken = own(numbers(16, 6, seed=i)).gather(1, ids(16, 1, seed=i, low=0, high=4))
        return F.smooth_l1_loss(taken[:, 0], reward + 0.99 * best * (1 - done))

    return nn.ModuleDict({"own": own, "target": target.requires_grad_(False)}), loss


@model()
def reinforce():
    own = _policy()

    def loss(i):
        returns = numbers(16, seed=i).flip(0).cumsum(0).flip(0)
        returns = (returns - returns.mean()) / (returns.std() + 1e-8)
        logits = own(numbers(16, 6, seed=i))
        choice = torch.distributions.Categorical(logits=logits, validate_args=False)
        return -(choice.log_prob(ids(16, seed=i, low=0, high=4)) * returns).mean()

    return own, loss


# ---- graphs ----


def _edges(i):
    return ids(2, 60, seed=i, low=0, high=20)


def _classes(i):
    return ids(20, seed=i, low=0, high=4)


@model()
def gnn_index_add():
    own = nn.ModuleList([nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 4)])

    def loss(i):
        source, to = _edges(i)
        h = own[0](numbers(20, 8, seed=i)).relu()
        degree = torch.zeros(20).index_add(0, to, torch.ones(60)).clamp(min=1)
        for _ in range(2):
            sums = torch.zeros(20, 16).index_add(0, to, own[1](h)[source])
            h = (h + sums / degree[:, None]).relu()
        return F.cross_entropy(own[2](h), _classes(i))

    return own, loss


@model()
def gnn_sparse():
    own = nn.ModuleList([nn.Linear(8, 16), nn.Linear(16, 4)])

    def loss(i):
        adjacency = torch.sparse_coo_tensor(_edges(i), numbers(60, seed=i), (20, 20))
        h = torch.spmm(adjacency, own[0](numbers(20, 8, seed=i))).relu()
        return F.cross_entropy(torch.sparse.mm(adjacency, own[1](h)), _classes(i))

    return own, loss


@model()
def gnn_scatter():
    own = nn.ModuleList([nn.Linear(8, 16), nn.Linear(16, 4)])

    def loss(i):
        source, to = _edges(i)
        sent = own[0](numbers(20, 8, seed=i)).relu()[source]
        to = to[:, None].expand(-1, 16)
        sums = torch.zeros(20, 16).scatter_add(0, to, sent)
        most = torch.zeros(20, 16).scatter_reduce(0, to, sent, "amax")
        return F.cross_entropy(own[1](sums + most), _classes(i))

    return own, loss


def _graph(name, first, second):
    """Two layers from torch_geometric."""

    def build():
        import torch_geometric.nn

        own = nn.ModuleList([first(torch_geometric.nn), second(torch_geometric.nn)])

        def loss(i):
            edges = _edges(i)
            h = own[0](numbers(20, 8, seed=i), edges).relu()
            return F.cross_entropy(own[1](h, edges), _classes(i))

        return own, loss

    model("torch_geometric", name)(build)


_graph("pyg_gcn", lambda g: g.GCNConv(8, 16), lambda g: g.GCNConv(16, 4))
_graph("pyg_gat", lambda g: g.GATConv(8, 8, heads=2), lambda g: g.SAGEConv(16, 4))


# ---- the packages' basic models ----


def _labelled(own):
    return own, lambda i: own(input_ids=(x := ids(2, 12, seed=i)), labels=x).loss


@model("transformers")
def gpt2_hf():
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"n_layer": 2, "n_embd": 32, "n_head": 4, "vocab_size": 100, "n_positions": 64}
    return _labelled(GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=1, eos_token_id=2)))


@model("transformers")
def fnet():
    from transformers import FNetConfig, FNetForMaskedLM

    sizes = {"num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 48}
    return _labelled(FNetForMaskedLM(FNetConfig(**sizes, vocab_size=100)))


@model("transformers")
def llama_hf():
    from transformers import LlamaConfig, LlamaForCausalLM

    return _labelled(LlamaForCausalLM(LlamaConfig(**TEXT)))


@model("transformers")
def bert_hf():
    """With a padding mask, which the package searches for zeros."""
    from transformers import BertConfig, BertForMaskedLM

    own = BertForMaskedLM(BertConfig(**TEXT))

    def loss(i):
        x, seen = ids(2, 12, seed=i), (ids(2, 12, seed=i, low=0, high=4) > 0).long()
        return own(input_ids=x, attention_mask=seen, labels=x).loss

    return own, loss


@model("transformers")
def mixtral_batched():
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(**TEXT, num_local_experts=4, num_experts_per_tok=2)
    own = MixtralForCausalLM(config)
    own.set_experts_implementation("batched_mm")
    return _labelled(own)


@model("torchvision")
def resnet50_tv():
    import torchvision

    own = torchvision.models.resnet50(num_classes=5)
    return own, lambda i: F.cross_entropy(own(pixels(i)), ids(2, seed=i, low=0, high=5))


@model("timm")
def deit_timm():
    import timm

    own = timm.create_model("deit_tiny_patch16_224", num_classes=5, img_size=32, depth=2)
    return own, lambda i: F.cross_entropy(own(pixels(i)), ids(2, seed=i, low=0, high=5))
