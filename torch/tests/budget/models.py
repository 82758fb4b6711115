"""Small models of every kind that a budget is tested with: name -> (module, arguments of its forward, which returns the loss).

They are written out here: those of libraries add masks and graph breaks that differ from version to version.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Attention(nn.Module):
    def __init__(self, width, heads, causal, rotary=False, dropout=0.0, bias=True):
        super().__init__()
        self.query, self.context = nn.Linear(width, width, bias=bias), nn.Linear(width, 2 * width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)
        self.heads, self.causal, self.rotary, self.dropout = heads, causal, rotary, dropout

    def forward(self, x, context=None):
        context = x if context is None else context
        split = lambda z: z.view(*z.shape[:2], self.heads, -1).transpose(1, 2)
        q = split(self.query(x))
        k, v = (split(z) for z in self.context(context).chunk(2, -1))
        if self.rotary:
            half = q.shape[-1] // 2
            angle = torch.outer(torch.arange(q.shape[2], device=q.device), 1e4 ** (-torch.arange(half, device=q.device) / half))
            cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
            turn = lambda z: (z * cos + torch.cat((-z[..., half:], z[..., :half]), -1) * sin).to(v.dtype)
            q, k = turn(q), turn(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, dropout_p=self.dropout if self.training else 0.0)
        return self.out(y.transpose(1, 2).flatten(2))


class Gated(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(a, b, bias=False) for a, b in ((width, inner), (width, inner), (inner, width)))

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def mlp(width):
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class Block(nn.Module):
    """gpt2: norms first; bert: norms last, dropout; llama: rms norms, rotary, gated; t5: attends to a context too."""

    def __init__(self, kind, width, heads, dropout=0.0, causal=True):
        super().__init__()
        norm = RmsNorm if kind in ("llama", "t5") else nn.LayerNorm
        self.kind, self.drop = kind, nn.Dropout(dropout)
        self.norm1, self.norm2 = norm(width), norm(width)
        self.attention = Attention(width, heads, causal, rotary=kind == "llama", bias=kind != "llama")
        self.mlp = Gated(width, 5 * width // 2) if kind in ("llama", "t5") else mlp(width)
        self.cross, self.norm3 = (Attention(width, heads, False), norm(width)) if kind == "t5" and causal else (None, None)

    def forward(self, x, context=None):
        if self.kind == "bert":
            x = self.norm1(x + self.drop(self.attention(x)))
            return self.norm2(x + self.drop(self.mlp(x)))
        x = x + self.drop(self.attention(self.norm1(x)))
        if self.cross is not None:
            x = x + self.cross(self.norm3(x), context)
        return x + self.drop(self.mlp(self.norm2(x)))


class Transformer(nn.Module):
    def __init__(self, kind, vocabulary=1000, longest=128, width=128, layers=3, heads=4, dropout=0.0):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(longest, width)
        self.blocks = nn.ModuleList(Block(kind, width, heads, dropout, causal=kind != "bert") for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        if kind != "llama":
            self.head.weight = self.tokens.weight
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.05)

    def forward(self, x, y):
        h = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            h = block(h)
        return F.cross_entropy(self.head(self.norm(h)).float().flatten(0, 1), y.flatten())


class T5(nn.Module):
    def __init__(self, vocabulary=500, width=128, layers=2, heads=4):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.encoder = nn.ModuleList(Block("t5", width, heads, causal=False) for _ in range(layers))
        self.decoder = nn.ModuleList(Block("t5", width, heads) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, x, y):
        context, h = self.tokens(x), self.tokens(y)
        for block in self.encoder:
            context = block(context)
        for block in self.decoder:
            h = block(h, context)
        return F.cross_entropy(self.head(h).flatten(0, 1), y.flatten())


class Vit(nn.Module):
    def __init__(self, width=128, layers=3, heads=4, patch=8, classes=100):
        super().__init__()
        self.patch, self.blocks = nn.Conv2d(3, width, patch, patch), nn.ModuleList(Block("gpt2", width, heads, causal=False) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x, y):
        h = self.patch(x).flatten(2).transpose(1, 2)
        for block in self.blocks:
            h = block(h)
        return F.cross_entropy(self.head(self.norm(h).mean(1)), y)


class Residual(nn.Module):
    def __init__(self, inside, outside, stride=1):
        super().__init__()
        conv = lambda a, b, s: nn.Conv2d(a, b, 3, s, 1, bias=False)
        self.path = nn.Sequential(conv(inside, outside, stride), nn.BatchNorm2d(outside), nn.ReLU(), conv(outside, outside, 1), nn.BatchNorm2d(outside))
        self.short = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)) if stride > 1 or inside != outside else nn.Identity()

    def forward(self, x):
        return F.relu(self.path(x) + self.short(x))


class ResNet(nn.Module):
    def __init__(self, width=16, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2))
        self.blocks = nn.Sequential(*[Residual(width << max(0, i - 1), width << i, 1 if i == 0 else 2) for i in range(3)], Residual(width << 2, width << 2))
        self.head = nn.Linear(width << 2, classes)

    def forward(self, x, y):
        return F.cross_entropy(self.head(self.blocks(self.stem(x)).mean((2, 3))), y)


class UNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        conv = lambda a, b: nn.Conv2d(a, b, 3, 1, 1, bias=False)  # a norm follows: the gradient of a bias would be noise
        pair = lambda a, b: nn.Sequential(conv(a, b), nn.GroupNorm(4, b), nn.SiLU(), conv(b, b), nn.GroupNorm(4, b), nn.SiLU())
        self.down, self.middle = nn.ModuleList([pair(3, width), pair(width, 2 * width)]), pair(2 * width, 4 * width)
        self.up = nn.ModuleList([pair(6 * width, 2 * width), pair(3 * width, width)])
        self.out = nn.Conv2d(width, 3, 1)

    def forward(self, x, y):
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = F.avg_pool2d(x, 2)
        x = self.middle(x)
        for block in self.up:
            x = block(torch.cat((F.interpolate(x, scale_factor=2.0, mode="nearest"), kept.pop()), 1))
        return F.mse_loss(self.out(x), y)


class Scan(nn.Module):
    """A state-space layer written as a loop over time, as in Mamba."""

    def __init__(self, vocabulary=200, width=64, state=8, layers=2):
        super().__init__()
        self.tokens, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.inside = nn.ModuleList(nn.Linear(width, 2 * width + 2 * state) for _ in range(layers))
        self.decay = nn.ParameterList(nn.Parameter(torch.randn(width, state) * 0.1) for _ in range(layers))
        self.state = state

    def layer(self, x, inside, decay):
        step, gate, write, read = inside(x).split((x.shape[-1], x.shape[-1], self.state, self.state), -1)
        step, hidden, out = F.softplus(step), x.new_zeros(x.shape[0], x.shape[2], self.state), []
        for t in range(x.shape[1]):
            hidden = hidden * torch.exp(-step[:, t, :, None] * decay.exp()) + (step[:, t] * x[:, t])[..., None] * write[:, t, None]
            out.append((hidden * read[:, t, None]).sum(-1))
        return x + torch.stack(out, 1) * F.silu(gate)

    def forward(self, x, y):
        h = self.tokens(x)
        for inside, decay in zip(self.inside, self.decay):
            h = self.layer(h, inside, decay)
        return F.cross_entropy(self.head(h).flatten(0, 1), y.flatten())


class Mixture(nn.Module):
    """Experts that every token visits, weighted by a router that keeps the best two."""

    def __init__(self, vocabulary=500, width=128, experts=4):
        super().__init__()
        self.tokens, self.router = nn.Embedding(vocabulary, width), nn.Linear(width, experts)
        self.up, self.down = (nn.Parameter(torch.randn(experts, a, b) * 0.05) for a, b in ((width, 2 * width), (2 * width, width)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, x, y):
        h = self.norm(self.tokens(x)).flatten(0, 1)
        weight = self.router(h).softmax(-1)
        best = weight.topk(2, -1)
        weight = torch.zeros_like(weight).scatter(1, best.indices, best.values)
        hidden = F.gelu(torch.einsum("td,edf->etf", h, self.up))
        out = torch.einsum("etf,efd,te->td", hidden, self.down, weight)
        return F.cross_entropy(self.head(h + out), y.flatten())


def _words(vocabulary, batch, length):
    return torch.randint(0, vocabulary, (batch, length)), torch.randint(0, vocabulary, (batch, length))


def _images(batch, size, classes):
    return torch.randn(batch, 3, size, size), torch.randint(0, classes, (batch,))


MODELS = {
    "gpt2": lambda: (Transformer("gpt2"), _words(1000, 4, 128)),
    "bert": lambda: (Transformer("bert", dropout=0.1), _words(1000, 4, 128)),
    "llama": lambda: (Transformer("llama"), _words(1000, 6, 128)),
    "t5": lambda: (T5(), _words(500, 12, 64)),
    "vit": lambda: (Vit(), _images(16, 64, 100)),
    "resnet": lambda: (ResNet(), _images(8, 32, 10)),
    # In double precision: its convolutions and norms differ by 1e-6 in single precision with the order of additions alone.
    "unet": lambda: (UNet().double(), (torch.randn(2, 3, 32, 32).double(), torch.randn(2, 3, 32, 32).double())),
    "scan": lambda: (Scan(), _words(200, 4, 12)),
    "moe": lambda: (Mixture(), _words(500, 4, 32)),
}


def make(name, seed=0):
    torch.manual_seed(seed)
    model, arguments = MODELS[name]()
    return model.train(), arguments
