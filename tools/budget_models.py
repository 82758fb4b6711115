"""The models of tools/bench_torch_budget_gpu.py at their published sizes; `forward` returns the loss alone.

Transformers are written out: those of libraries add masks and graph breaks that differ from version to version.
`checkpointing` recomputes every block, as people do by hand; `split_loss` computes the loss over the vocabulary in so many parts.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class Norm(nn.Module):
    def __init__(self, width, kind):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if kind == "layer" else None

    def forward(self, x):
        if self.bias is not None:
            return F.layer_norm(x, x.shape[-1:], self.weight, self.bias)
        return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * self.weight


class Attention(nn.Module):
    def __init__(self, width, heads, causal, bias, rotary):
        super().__init__()
        self.qkv, self.proj = nn.Linear(width, 3 * width, bias=bias), nn.Linear(width, width, bias=bias)
        self.heads, self.causal, self.rotary = heads, causal, rotary

    def forward(self, x, cos, sin):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, d // self.heads).transpose(1, 2) for z in self.qkv(x).split(d, dim=2))
        if self.rotary:
            half = q.shape[-1] // 2
            turn = lambda z: (z * cos + torch.cat((-z[..., half:], z[..., :half]), -1) * sin).to(v.dtype)
            q, k = turn(q), turn(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))


class Mlp(nn.Module):
    def __init__(self, width, inner, kind):
        super().__init__()
        gated = kind == "swiglu"
        self.kind = kind
        self.up, self.down = nn.Linear(width, inner, bias=not gated), nn.Linear(inner, width, bias=not gated)
        self.gate = nn.Linear(width, inner, bias=False) if gated else None

    def forward(self, x):
        if self.gate is not None:
            return self.down(F.silu(self.gate(x)) * self.up(x))
        return self.down(F.gelu(self.up(x), approximate=self.kind))


class Block(nn.Module):
    def __init__(self, width, heads, inner, style, dropout):
        super().__init__()
        llama, self.post, self.dropout = style == "llama", style == "bert", dropout
        self.n1, self.n2 = (Norm(width, "rms" if llama else "layer") for _ in range(2))
        self.attn = Attention(width, heads, style != "bert", not llama, llama)
        self.mlp = Mlp(width, inner, {"llama": "swiglu", "bert": "none", "gpt2": "tanh"}[style])

    def forward(self, x, cos, sin):
        drop = lambda z: F.dropout(z, self.dropout, self.training) if self.dropout else z
        if self.post:
            x = self.n1(x + drop(self.attn(x, cos, sin)))
            return self.n2(x + drop(self.mlp(x)))
        x = x + drop(self.attn(self.n1(x), cos, sin))
        return x + drop(self.mlp(self.n2(x)))


class Transformer(nn.Module):
    def __init__(self, style, vocabulary, longest, width, layers, heads, inner, dropout=0.0):
        super().__init__()
        self.of_head, self.checkpointing, self.split_loss = width // heads, False, 0
        self.tok = nn.Embedding(vocabulary, width)
        self.pos = nn.Embedding(longest, width) if style != "llama" else None
        self.first = Norm(width, "layer") if style == "bert" else None
        self.blocks = nn.ModuleList(Block(width, heads, inner, style, dropout) for _ in range(layers))
        self.last = Norm(width, "rms" if style == "llama" else "layer")
        self.head = nn.Linear(width, vocabulary, bias=False)
        if style != "llama":
            self.head.weight = self.tok.weight
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, x, y):
        h, cos, sin = self.tok(x), None, None
        if self.pos is not None:
            h = h + self.pos(torch.arange(x.shape[1], device=x.device))
        else:
            rate = 1e4 ** (-torch.arange(0, self.of_head, 2, device=x.device) / self.of_head)
            angle = torch.outer(torch.arange(x.shape[1], device=x.device), rate).repeat(1, 2)
            cos, sin = angle.cos().to(h.dtype), angle.sin().to(h.dtype)
        if self.first is not None:
            h = self.first(h)
        for block in self.blocks:
            h = checkpoint(block, h, cos, sin, use_reentrant=False) if self.checkpointing else block(h, cos, sin)
        if self.split_loss:
            import plimsoll_torch
            return plimsoll_torch.linear_cross_entropy(self.last(h), self.head.weight, y, chunks=self.split_loss)
        z = self.head(self.last(h))
        return F.cross_entropy(z.float().view(-1, z.shape[-1]), y.reshape(-1))


class Images(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net, self.checkpointing = net, False

    def forward(self, x, y):
        if not self.checkpointing:
            return F.cross_entropy(self.net(x), y)
        n = self.net
        x = n.maxpool(n.relu(n.bn1(n.conv1(x))))
        for stage in (n.layer1, n.layer2, n.layer3, n.layer4):
            for block in stage:
                x = checkpoint(block, x, use_reentrant=False)
        return F.cross_entropy(n.fc(torch.flatten(n.avgpool(x), 1)), y)


def _words(vocabulary, batch, length):
    return lambda device: tuple(torch.randint(0, vocabulary, (batch, length), device=device) for _ in range(2))


def resnet(tiny):
    import torchvision
    batch, size = (4, 64) if tiny else (256, 224)
    net = torchvision.models.resnet18() if tiny else torchvision.models.resnet50()
    return Images(net), lambda device: (torch.randn(batch, 3, size, size, device=device), torch.randint(0, 1000, (batch,), device=device))


def gpt2(tiny):
    if tiny:
        return Transformer("gpt2", 500, 64, 64, 2, 2, 256), _words(500, 2, 64)
    return Transformer("gpt2", 50257, 1024, 768, 12, 12, 3072), _words(50257, 16, 1024)


def bert(tiny):
    if tiny:
        return Transformer("bert", 500, 64, 64, 2, 2, 256, 0.1), _words(500, 2, 64)
    return Transformer("bert", 30522, 512, 768, 12, 12, 3072, 0.1), _words(30522, 32, 512)


def llama(tiny):
    if tiny:
        return Transformer("llama", 500, 64, 64, 2, 2, 176), _words(500, 2, 64)
    return Transformer("llama", 32000, 2048, 2048, 18, 16, 5632), _words(32000, 2, 2048)
