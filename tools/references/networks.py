"""The reference networks: torchvision's and Hugging Face's modules in small configurations.

Each function gives (module, run) where run(module, inputs) is the logits; widths are options because the
reference evaluation in fp64 is slow. Names of parameters are those of the full-size networks.
"""
import torch
from torch import nn
import torchvision.models.resnet as tv
import transformers as hf


def mlp(o):
    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            sizes = [o["image"] ** 2] + [o["width"]] * o["layers"] + [o["classes"]]
            self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

        def forward(self, x):
            x = x.flatten(1)
            for layer in self.layers[:-1]:
                x = torch.relu(layer(x))
            return self.layers[-1](x)

    return Mlp()


def alexnet(o):
    w, hidden = o["width"], 64 * o["width"]
    pool = lambda: nn.MaxPool2d(3, 2)

    class AlexNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv2d(3, w, 11, 4, 2), nn.ReLU(), pool(),
                nn.Conv2d(w, 3 * w, 5, padding=2), nn.ReLU(), pool(),
                nn.Conv2d(3 * w, 6 * w, 3, padding=1), nn.ReLU(),
                nn.Conv2d(6 * w, 4 * w, 3, padding=1), nn.ReLU(),
                nn.Conv2d(4 * w, 4 * w, 3, padding=1), nn.ReLU(), pool())
            self.avgpool = nn.AdaptiveAvgPool2d(6)
            self.classifier = nn.Sequential(
                nn.Identity(), nn.Linear(144 * w, hidden), nn.ReLU(),
                nn.Identity(), nn.Linear(hidden, hidden), nn.ReLU(),
                nn.Linear(hidden, o["classes"]))

        def forward(self, x):
            return self.classifier(self.avgpool(self.features(x)).flatten(1))

    return AlexNet()


def resnet(o):
    block = tv.BasicBlock if o["depth"] < 50 else tv.Bottleneck
    counts = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}[o["depth"]]
    w = o["width"]

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, w, 7, 2, 3, bias=False)
            self.bn1 = nn.BatchNorm2d(w)
            self.maxpool = nn.MaxPool2d(3, 2, 1)
            channels = w
            for stage, count in enumerate(counts):
                planes, blocks = w << stage, []
                for i in range(count):
                    stride = 2 if i == 0 and stage > 0 else 1
                    down = None
                    if stride != 1 or channels != planes * block.expansion:
                        down = nn.Sequential(nn.Conv2d(channels, planes * block.expansion, 1, stride, bias=False),
                                             nn.BatchNorm2d(planes * block.expansion))
                    blocks.append(block(channels, planes, stride, down))
                    channels = planes * block.expansion
                setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
            self.fc = nn.Linear(channels, o["classes"])

        def forward(self, x):
            x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
            for stage in range(4):
                x = getattr(self, f"layer{stage + 1}")(x)
            return self.fc(x.mean((2, 3)))

    return ResNet()


def lstm(o):
    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(50, o["width"], o["layers"], batch_first=True)
            self.fc = nn.Linear(o["width"], o["classes"])

        def forward(self, x):
            return self.fc(self.lstm(x)[0])

    return Lstm()


class Logits(nn.Module):
    """A Hugging Face model as a function from named inputs to logits, with its own parameter names."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *inputs, **named):
        return self.model(*inputs, **named).logits

    def named_parameters(self, *args, **kwargs):
        return self.model.named_parameters(*args, **kwargs)


def gpt2(o):
    return Logits(hf.GPT2LMHeadModel(hf.GPT2Config(
        n_embd=o["width"], n_layer=o["layers"], n_head=o["heads"], vocab_size=o["vocab"],
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)))


def bert(o):
    return Logits(hf.BertForMaskedLM(hf.BertConfig(
        hidden_size=o["width"], num_hidden_layers=o["layers"], num_attention_heads=o["heads"],
        intermediate_size=4 * o["width"], vocab_size=o["vocab"],
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)))


def whisper(o):
    w, n, h = o["width"], o["layers"], o["heads"]
    model = hf.WhisperForConditionalGeneration(hf.WhisperConfig(
        d_model=w, encoder_layers=n, decoder_layers=n, encoder_attention_heads=h, decoder_attention_heads=h,
        encoder_ffn_dim=4 * w, decoder_ffn_dim=4 * w, vocab_size=o["vocab"], max_source_positions=o["frames"] // 2,
        dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, use_cache=False,
        pad_token_id=0, bos_token_id=0, eos_token_id=0, decoder_start_token_id=0))
    # The encoder's positions are an ordinary weight in the zoo; here they are frozen sinusoids.
    model.model.encoder.embed_positions.weight.requires_grad_(True)
    return Logits(model)


def moe(o):
    w, experts = o["width"], o["experts"]
    rows = o["batch"] * -(-5 * o["seq"] // (4 * experts))

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_attn, self.c_proj = nn.Linear(w, 3 * w), nn.Linear(w, w)

        def forward(self, x):
            heads = lambda t: t.unflatten(2, (o["heads"], -1)).transpose(1, 2)
            q, k, v = map(heads, self.c_attn(x).chunk(3, 2))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.c_proj(y.transpose(1, 2).flatten(2))

    class Expert(nn.Module):
        def __init__(self):
            super().__init__()
            self.wi, self.wo = nn.Linear(w, 4 * w, bias=False), nn.Linear(4 * w, w, bias=False)

        def forward(self, x):
            return self.wo(torch.relu(self.wi(x)))

    class Router(nn.Module):
        def __init__(self):
            super().__init__()
            self.classifier = nn.Linear(w, experts, bias=False)

    class Switch(nn.Module):
        def __init__(self):
            super().__init__()
            self.router = Router()
            self.experts = nn.ModuleDict({f"expert_{e}": Expert() for e in range(experts)})

        def forward(self, x):
            gate, chosen = self.router.classifier(x.flatten(0, 1)).softmax(1).max(1)
            out, free = [], [rows] * experts
            for token, like, expert in zip(x.flatten(0, 1), gate, chosen.tolist()):
                free[expert] -= 1
                out.append(like * self.experts[f"expert_{expert}"](token) if free[expert] >= 0 else torch.zeros_like(token))
            return torch.stack(out).view_as(x)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.attn, self.ln_2, self.mlp = nn.LayerNorm(w), Attention(), nn.LayerNorm(w), Switch()

        def forward(self, x):
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))

    class Moe(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(o["vocab"], w), nn.Embedding(1024, w)
            self.h = nn.ModuleList(Block() for _ in range(o["layers"]))
            self.ln_f = nn.LayerNorm(w)

        def forward(self, ids):
            x = self.wte(ids) + self.wpe.weight[:ids.shape[1]]
            for block in self.h:
                x = block(x)
            return self.ln_f(x) @ self.wte.weight.T

    return Moe()
