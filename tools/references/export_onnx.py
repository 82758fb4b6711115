#!/usr/bin/env python3
"""Exports small configurations of many model families from PyTorch, by both of its ONNX exporters, with
inputs and PyTorch's own outputs: the files under tests/onnx/exports. Weights are random.

  python3 tools/references/export_onnx.py tests/onnx/exports [name ...]
  python3 tools/references/export_onnx.py tests/onnx/wide --wide

Needs torch, torchvision, transformers, onnx, onnxscript, numpy. Every case NAME.EXPORTER.onnx has NAME.npz beside it:
arrays `in.<input>` and `out.<index>`, and `grad.<parameter>` where one training step was taken (loss: the
sum of the first output times `loss.weight`)."""
import argparse
import contextlib
import logging
import os
import pathlib
import sys
import traceback
import warnings

import numpy as np
import onnx
import onnx.numpy_helper
import torch
from torch import nn

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
LIMIT = 700_000


class Logits(nn.Module):
    """A transformers model with positional tensors in and one tensor out."""

    def __init__(self, model, pick, names):
        super().__init__()
        self.model, self.pick, self.names = model, pick, names

    def forward(self, *inputs):
        out = self.model(**dict(zip(self.names, inputs)))
        return getattr(out, self.pick)


def images(size, channels=3, batch=2):
    return {"x": torch.randn(batch, channels, size, size)}


def tokens(vocabulary, length=12, batch=2):
    return torch.randint(0, vocabulary, (batch, length))


def vision(build, size=64, **options):
    def make():
        import torchvision.models as zoo
        return getattr(zoo, build)(weights=None, num_classes=10, **options), images(size)
    return make


def slim_resnet():
    from torchvision.models.resnet import BasicBlock, ResNet

    class Slim(ResNet):
        def __init__(self):
            nn.Module.__init__(self)
            self._norm_layer, self.inplanes, self.dilation, self.groups, self.base_width = nn.BatchNorm2d, 16, 1, 1, 64
            self.conv1 = nn.Conv2d(3, 16, 7, 2, 3, bias=False)
            self.bn1, self.relu, self.maxpool = nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
            self.layer1 = self._make_layer(BasicBlock, 16, 1)
            self.layer2 = self._make_layer(BasicBlock, 32, 1, stride=2)
            self.layer3 = self._make_layer(BasicBlock, 48, 1, stride=2)
            self.layer4 = nn.Identity()
            self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(48, 10)
    return Slim(), images(64)


def mobilenet_v2():
    from torchvision.models import MobileNetV2
    rows = [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 2, 2], [6, 64, 1, 2]]
    return MobileNetV2(num_classes=10, width_mult=0.35, inverted_residual_setting=rows), images(64)


def mobilenet_v3():
    from torchvision.models.mobilenetv3 import InvertedResidualConfig as Row, MobileNetV3
    rows = [Row(16, 3, 16, 16, True, "RE", 2, 1, 1), Row(16, 3, 32, 24, False, "RE", 2, 1, 1),
            Row(24, 5, 48, 24, True, "HS", 2, 1, 1), Row(24, 5, 48, 32, True, "HS", 1, 1, 1)]
    return MobileNetV3(rows, last_channel=64, num_classes=10), images(64)


def efficientnet():
    from torchvision.models.efficientnet import EfficientNet, MBConvConfig
    rows = [MBConvConfig(1, 3, 1, 32, 16, 1, 0.5, 1), MBConvConfig(4, 3, 2, 16, 24, 2, 0.5, 1),
            MBConvConfig(4, 5, 2, 24, 32, 1, 0.5, 1)]
    return EfficientNet(rows, dropout=0.2, last_channel=64, num_classes=10), images(64)


def convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    return ConvNeXt([CNBlockConfig(16, 32, 2), CNBlockConfig(32, 64, 1), CNBlockConfig(64, None, 1)], num_classes=10), images(64)


def densenet():
    from torchvision.models import DenseNet
    return DenseNet(growth_rate=8, block_config=(2, 3, 2), num_init_features=16, bn_size=2, num_classes=10), images(64)


class Inception(nn.Module):
    def __init__(self):
        super().__init__()
        from torchvision.models.googlenet import BasicConv2d, Inception as Block
        self.conv = BasicConv2d(3, 32, kernel_size=7, stride=2, padding=3)
        self.pool = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.a = Block(32, 16, 16, 24, 8, 12, 12)
        self.b = Block(64, 24, 16, 32, 8, 16, 16)
        self.fc = nn.Linear(88, 10)

    def forward(self, x):
        x = self.b(self.pool(self.a(self.pool(self.conv(x)))))
        return self.fc(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))


def vit():
    from torchvision.models import VisionTransformer
    return VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=48, mlp_dim=96, num_classes=10), images(32)


def swin():
    from torchvision.models import SwinTransformer
    return SwinTransformer(patch_size=[4, 4], embed_dim=24, depths=[2, 2], num_heads=[2, 4], window_size=[4, 4],
                           stochastic_depth_prob=0.0, num_classes=10), images(32)


class Unet(nn.Module):
    def __init__(self, wide=12):
        super().__init__()

        def double(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU())
        self.down1, self.down2, self.mid = double(3, wide), double(wide, 2 * wide), double(2 * wide, 4 * wide)
        self.up2 = nn.ConvTranspose2d(4 * wide, 2 * wide, 2, stride=2)
        self.dec2 = double(4 * wide, 2 * wide)
        self.up1 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.dec1 = double(3 * wide, wide)
        self.out = nn.Conv2d(wide, 2, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(nn.functional.max_pool2d(a, 2))
        c = self.mid(nn.functional.avg_pool2d(b, 2))
        b = self.dec2(torch.cat([b, self.up2(c)], 1))
        a = self.dec1(torch.cat([a, self.up1(b)], 1))
        return self.out(a)


def padding(length=12, real=8):
    mask = torch.ones(2, length, dtype=torch.long)
    mask[1, real:] = 0
    return mask


def decoder(model, mask):
    """With a mask of padding as an input, or plainly causal."""
    inputs = {"input_ids": tokens(120)}
    if mask:
        inputs["attention_mask"] = padding()
    return Logits(model, "logits", list(inputs)), inputs


def gpt2(mask=False):
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(vocab_size=120, n_positions=32, n_embd=48, n_layer=2, n_head=4, use_cache=False, attn_pdrop=0, embd_pdrop=0, resid_pdrop=0)
    return decoder(GPT2LMHeadModel(config), mask)


def bert(name="Bert"):
    import transformers
    config = getattr(transformers, f"{name}Config")(vocab_size=120, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                                                    intermediate_size=192, max_position_embeddings=40)
    model = getattr(transformers, f"{name}ForMaskedLM")(config)
    return Logits(model, "logits", ["input_ids", "attention_mask"]), {"input_ids": tokens(118) + 2, "attention_mask": padding()}


def t5():
    from transformers import T5Config, T5ForConditionalGeneration
    config = T5Config(vocab_size=120, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, use_cache=False, dropout_rate=0.0)
    return Logits(T5ForConditionalGeneration(config), "logits", ["input_ids", "decoder_input_ids"]), {
        "input_ids": tokens(120), "decoder_input_ids": tokens(120, 7)}


def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    config = WhisperConfig(vocab_size=120, num_mel_bins=16, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                           decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=32,
                           max_target_positions=24, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, use_cache=False)
    return Logits(WhisperForConditionalGeneration(config), "logits", ["input_features", "decoder_input_ids", "decoder_attention_mask"]), {
        "input_features": torch.randn(2, 16, 64), "decoder_input_ids": tokens(120, 7), "decoder_attention_mask": padding(7, 5)}


def llama(mask=False):
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(vocab_size=120, hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=64, use_cache=False)
    return decoder(LlamaForCausalLM(config), mask)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(80, 24)
        self.lstm = nn.LSTM(24, 32, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(64, 10)

    def forward(self, ids):
        y, _ = self.lstm(self.embed(ids))
        return self.out(y[:, -1])


class Spatial(nn.Module):
    """A spatial transformer: a grid computed from the image, sampled, sampled again at other rules."""

    def __init__(self):
        super().__init__()
        self.look = nn.Linear(3 * 8 * 8, 6)
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        theta = self.look(x.flatten(1)).tanh().view(-1, 2, 3)
        steps = (torch.arange(6, dtype=x.dtype) + 0.5) / 3 - 1
        base = torch.stack([steps.repeat(6), steps.repeat_interleave(6), torch.ones(36)], 1)
        grid = (base @ theta.transpose(1, 2)).view(-1, 6, 6, 2)
        y = nn.functional.grid_sample(self.conv(x), grid, align_corners=False)
        return nn.functional.grid_sample(y, 1.7 * grid, mode="bicubic", padding_mode="reflection", align_corners=True)


class Spectrum(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(48, 48)
        self.out = nn.Linear(9, 4)

    def forward(self, x):
        parts = torch.stft(self.mix(x), 16, 4, window=torch.hann_window(16), return_complex=False)
        return self.out((parts.square().sum(-1) + 1e-3).sqrt().transpose(1, 2))


class Regions(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.out = nn.Conv2d(3, 6, 3, padding=1), nn.Linear(6 * 9, 4)

    def forward(self, x):
        from torchvision.ops import roi_align
        boxes = torch.tensor([[0, 1., 1., 9.5, 6.], [1, 0., 2., 5., 11.], [1, -3., 4., 14., 13.]])
        return self.out(roi_align(self.conv(x), boxes, 3, 0.8, 2, True).flatten(1))


class Deformed(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset, self.mask, self.conv = nn.Conv2d(4, 18, 3, padding=1), nn.Conv2d(4, 9, 3, padding=1), nn.Conv2d(4, 5, 3)

    def forward(self, x):
        from torchvision.ops import deform_conv2d
        return deform_conv2d(x, 2 * self.offset(x), self.conv.weight, self.conv.bias, padding=1, mask=self.mask(x).sigmoid())


class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.mix = nn.Conv2d(3, 3, 1), nn.Linear(27, 27)

    def forward(self, x):
        rows = nn.functional.unfold(self.conv(x), 3, padding=1, stride=2).transpose(1, 2)
        return nn.functional.fold(self.mix(rows).transpose(1, 2), (8, 8), 3, padding=1, stride=2)


class Volumes(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(6, 16)

    def forward(self, x):
        return torch.linalg.det(self.mix(x).view(-1, 4, 4))


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(6, 6)
        self.gru = nn.GRU(6, 10, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x, state):
        return torch.cat([part.flatten() for part in self.gru(self.mix(x), state)])


class Shuffled(nn.Module):
    """Grouped convolutions between which channels change places, halves that part and join, a norm of neighbours."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 24, 3, 2, 1), nn.BatchNorm2d(24)
        self.one, self.deep, self.two = nn.Conv2d(24, 24, 1, groups=3), nn.Conv2d(24, 24, 3, padding=1, groups=24), nn.Conv2d(24, 20, 1, groups=4)
        self.near, self.out = nn.LocalResponseNorm(5), nn.Linear(32, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.norm(self.stem(x)).relu(), 3, 2, 1)
        n, c, h, w = x.shape
        y = self.one(x).view(n, 3, c // 3, h, w).transpose(1, 2).reshape(n, c, h, w)
        left, right = self.two(self.deep(y).relu()).chunk(2, 1)
        y = torch.cat([self.near(left), right.relu(), nn.functional.pad(x[:, 4:16, 1:], (0, 0, 1, 0))], 1)
        return self.out(nn.functional.lp_pool2d(y, 2.0, 2).mean((2, 3)))


class Relative(nn.Module):
    """Attention with a bias that a small network makes of how far apart two places are."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 5)
        self.far = nn.Sequential(nn.Linear(2, 12), nn.ReLU(), nn.Linear(12, 4))
        places = torch.stack(torch.meshgrid(torch.arange(3.), torch.arange(3.), indexing="ij"), -1).view(9, 2)
        self.register_buffer("apart", (places[:, None] - places[None]) / 3)

    def forward(self, x):
        q, k, v = self.qkv(x).view(-1, 9, 3, 4, 4).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / 2 + self.far(self.apart).permute(2, 0, 1)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, 9, 16))


class Sizes(nn.Module):
    """Sizes that follow from the input's: resized to what another branch has, and back."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.out = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(16, 9, 1)

    def forward(self, x):
        a = self.a(x).relu()
        b = nn.functional.interpolate(nn.functional.silu(self.b(a)), size=a.shape[-2:], mode="nearest")
        y = nn.functional.interpolate(self.out(torch.cat([a, b], 1)), size=x.shape[-2:], mode="bilinear", align_corners=True)
        return nn.functional.pixel_shuffle(y, 3) + nn.functional.interpolate(x[:, :1], scale_factor=3, mode="bicubic")


class Lengths(nn.Module):
    """A causal transformer block behind convolutions and a recurrent layer, of any length."""

    def __init__(self):
        super().__init__()
        self.embed, self.conv, self.gru = nn.Embedding(50, 16), nn.Conv1d(16, 16, 3), nn.GRU(16, 8, batch_first=True, bidirectional=True)
        self.norm, self.qkv, self.mix, self.out = nn.RMSNorm(16), nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 6)

    def forward(self, ids):
        b, t = ids.shape
        x = self.embed(ids)
        x = x + self.conv(nn.functional.pad(x.transpose(1, 2), (2, 0))).transpose(1, 2).relu()
        x = x + self.gru(x)[0]
        # Written out: the older exporter has no RMS norm.
        y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.norm.weight
        q, k, v = self.qkv(y).view(b, t, 3, 4, 4).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(x + self.mix(y.transpose(1, 2).reshape(b, t, 16)))


class Video(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.space = nn.Conv3d(3, 8, (3, 5, 5), (1, 2, 2), (1, 2, 2)), nn.BatchNorm3d(8), nn.Conv3d(8, 8, (1, 3, 3), 1, (0, 1, 1))
        self.time, self.group, self.out = nn.Conv3d(8, 12, (3, 1, 1), 1, (1, 0, 0)), nn.GroupNorm(3, 12), nn.Linear(12, 5)

    def forward(self, x):
        y = nn.functional.max_pool3d(self.norm(self.a(x)).relu(), (1, 3, 3), (1, 2, 2), (0, 1, 1))
        y = self.group(self.time(self.space(y) + y))
        return self.out(nn.functional.avg_pool3d(y, 2, ceil_mode=True).amax((2, 3, 4)))


def language(name, masked=False, **options):
    import transformers
    config = getattr(transformers, f"{name}Config")(vocab_size=120, **options)
    inputs = {"input_ids": tokens(120, 12 if masked else 6)}
    if masked:
        inputs["attention_mask"] = padding(real=10)  # a local window of four still sees something
    kind = "ForMaskedLM" if name.startswith("Deberta") else "ForCausalLM"
    return Logits(getattr(transformers, name + kind)(config), "logits", list(inputs)), inputs


def gpt_neo():
    return language("GPTNeo", True, hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], window_size=4,
                    max_position_embeddings=40, use_cache=False)


def deberta():
    return language("DebertaV2", True, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=40,
                    relative_attention=True, position_buckets=8, norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type=["c2p", "p2c"])


def mamba():
    return language("Mamba", hidden_size=16, state_size=4, num_hidden_layers=2, use_cache=False)


def segformer():
    from transformers import SegformerConfig, SegformerForSemanticSegmentation
    config = SegformerConfig(num_encoder_blocks=2, depths=[1, 1], sr_ratios=[4, 2], hidden_sizes=[16, 32], patch_sizes=[7, 3], strides=[4, 2],
                             num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=16, num_labels=4)
    return Logits(SegformerForSemanticSegmentation(config), "logits", ["pixel_values"]), {"pixel_values": torch.randn(1, 3, 64, 64)}


class Routed(nn.Module):
    """Each token through one expert, as people write it: nonzero, index_select and index_add for each."""

    def __init__(self, width=12, experts=3):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.up = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(experts))
        self.down = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(experts))

    def forward(self, x):
        weight, chosen = torch.softmax(self.gate(x), -1).max(-1)
        out = torch.zeros_like(x)
        for expert, (up, down) in enumerate(zip(self.up, self.down)):
            rows = torch.nonzero(chosen == expert).squeeze(-1)
            y = down(torch.relu(up(x.index_select(0, rows)))) * weight.index_select(0, rows).unsqueeze(-1)
            out = out.index_add(0, rows, y)
        return x + out


class RoutedTwice(nn.Module):
    """Each token through the two experts that it likes best, as Mixtral's layer was first published: one_hot and where."""

    def __init__(self, width=12, experts=4):
        super().__init__()
        self.norm, self.gate, self.experts = nn.LayerNorm(width), nn.Linear(width, experts, bias=False), experts
        self.w1 = nn.ModuleList(nn.Linear(width, 24, bias=False) for _ in range(experts))
        self.w2 = nn.ModuleList(nn.Linear(24, width, bias=False) for _ in range(experts))
        self.w3 = nn.ModuleList(nn.Linear(width, 24, bias=False) for _ in range(experts))

    def forward(self, x):
        tokens = self.norm(x).reshape(-1, x.shape[-1])
        weights, chosen = torch.topk(torch.softmax(self.gate(tokens), -1), 2)
        weights = weights / weights.sum(-1, keepdim=True)
        mask = nn.functional.one_hot(chosen, self.experts).permute(2, 1, 0)
        out = torch.zeros_like(tokens)
        for expert in range(self.experts):
            place, token = torch.where(mask[expert])
            y = tokens[token]
            y = self.w2[expert](nn.functional.silu(self.w1[expert](y)) * self.w3[expert](y))
            out.index_add_(0, token, y * weights[token, place, None])
        return x + out.reshape(x.shape)


class FirstOf(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        y = self.layer(x)
        return y[0] if isinstance(y, tuple) else y


def mixtral():
    from transformers import MixtralConfig
    from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock
    layer = MixtralSparseMoeBlock(MixtralConfig(hidden_size=16, intermediate_size=24, num_local_experts=4, num_experts_per_tok=2))
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.2)
    return FirstOf(layer), {"x": torch.randn(2, 10, 16)}


def switch():
    from transformers import SwitchTransformersConfig
    from transformers.models.switch_transformers.modeling_switch_transformers import SwitchTransformersSparseMLP
    config = SwitchTransformersConfig(d_model=16, d_ff=24, num_experts=4, expert_capacity=8, router_jitter_noise=0.0, dropout_rate=0.0)
    return FirstOf(SwitchTransformersSparseMLP(config)), {"x": torch.randn(2, 10, 16)}


def wav2vec2():
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC
    config = Wav2Vec2Config(vocab_size=20, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64, conv_dim=(16, 16),
                            conv_stride=(5, 2), conv_kernel=(10, 3), num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4)
    return Logits(Wav2Vec2ForCTC(config), "logits", ["input_values"]), {"input_values": torch.randn(1, 400)}


CASES = {
    "resnet": slim_resnet, "mobilenet_v2": mobilenet_v2, "mobilenet_v3": mobilenet_v3, "efficientnet": efficientnet,
    "convnext": convnext, "densenet": densenet, "inception": lambda: (Inception(), images(64)), "vit": vit, "swin": swin,
    "unet": lambda: (Unet(), images(32)), "gpt2": gpt2, "bert": bert, "roberta": lambda: bert("Roberta"), "t5": t5,
    "whisper": whisper, "llama": llama, "gpt2_mask": lambda: gpt2(True), "llama_mask": lambda: llama(True), "lstm": lambda: (Lstm(), {"ids": tokens(80, 6)}),
    "spatial": lambda: (Spatial(), images(8)), "spectrum": lambda: (Spectrum(), {"x": torch.randn(2, 48)}),
    "regions": lambda: (Regions(), images(12)), "deformed": lambda: (Deformed(), images(6, 4)), "patches": lambda: (Patches(), images(8)),
    "volumes": lambda: (Volumes(), {"x": torch.randn(5, 6)}), "gru": lambda: (Gru(), {"x": torch.randn(2, 5, 6), "state": torch.randn(4, 2, 10)}),
    "shuffled": lambda: (Shuffled(), images(32)), "relative": lambda: (Relative(), {"x": torch.randn(2, 9, 16)}),
    "sizes": lambda: (Sizes(), images(12)), "lengths": lambda: (Lengths(), {"ids": tokens(50)}), "video": lambda: (Video(), {"x": torch.randn(2, 3, 4, 16, 16)}),
    "gpt_neo": gpt_neo, "deberta": deberta, "mamba": mamba, "segformer": segformer, "wav2vec2": wav2vec2,
    "routed": lambda: (Routed(), {"x": torch.randn(11, 12)}), "routed_twice": lambda: (RoutedTwice(), {"x": torch.randn(2, 7, 12)}), "mixtral": mixtral, "switch": switch,
}
# Exports of these are large for what they add; the older exporter's is enough.
# The newer exporter has no form for a loop over the experts that were chosen.
SCRIPT_ONLY = {"gpt_neo", "deberta", "mamba", "segformer", "wav2vec2", "mixtral", "switch"}
# Exported with open dimensions, recorded at other sizes.
OPEN = {"sizes": ({"x": {0: "batch", 2: "height", 3: "width"}}, lambda: {"x": torch.randn(3, 3, 10, 15)}),
        "lengths": ({"ids": {0: "batch", 1: "seq"}}, lambda: {"ids": tokens(50, 7, 3)})}
WITH_GRADIENTS = {"shuffled", "relative", "sizes", "lengths", "video", "spatial", "spectrum", "regions", "deformed", "patches", "volumes", "resnet", "vit", "unet", "gpt2", "bert", "lstm", "convnext", "routed", "routed_twice", "mixtral"}


def settle(model):
    """Statistics and scales away from their starting values, so that nothing is accidentally right."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 1.5)
    for name, parameter in model.named_parameters():
        # Equal tensors would be stored once, and their gradients added.
        if parameter.dim() == 1 or parameter.numel() == parameter.shape[0] or (parameter == parameter.flatten()[0]).all():
            with torch.no_grad():
                parameter.add_(torch.randn_like(parameter) * 0.05)


# At the width that people use, without the weights: every large initialiser becomes a ConstantOfShape, as in ONNX's own
# light models. What such a file is for is its plan.
def wide_inputs(vocabulary):
    mask = torch.ones(2, 128, dtype=torch.long)
    mask[1, 90:] = 0
    return {"input_ids": tokens(vocabulary, 128), "attention_mask": mask}


def wide_gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config(use_cache=False, attn_pdrop=0, embd_pdrop=0, resid_pdrop=0))
    return Logits(model, "logits", ["input_ids", "attention_mask"]), wide_inputs(50257)


def wide_bert():
    from transformers import BertConfig, BertForMaskedLM
    return Logits(BertForMaskedLM(BertConfig()), "logits", ["input_ids", "attention_mask"]), wide_inputs(30522)


WIDE = {"gpt2": wide_gpt2, "bert": wide_bert}


def without_weights(path):
    file = onnx.load(path)
    kept, made = [], []
    for tensor in file.graph.initializer:
        if len(tensor.dims) == 0 or np.prod(tensor.dims) < 512 or tensor.data_type != onnx.TensorProto.FLOAT:
            kept.append(tensor)
            continue
        shape = onnx.numpy_helper.from_array(np.array(tensor.dims, np.int64), tensor.name + "/shape")
        kept.append(shape)
        value = onnx.numpy_helper.from_array(np.array([0.01], np.float32), "value")
        made.append(onnx.helper.make_node("ConstantOfShape", [shape.name], [tensor.name], value=value))
    nodes = list(file.graph.node)
    del file.graph.initializer[:], file.graph.node[:]
    file.graph.initializer.extend(kept)
    file.graph.node.extend(made + nodes)
    onnx.save(file, path)


def run_wide(name, folder):
    model, inputs = WIDE[name]()
    path = folder / f"{name}.script.onnx"
    export(model.eval(), inputs, path, False)
    without_weights(path)
    print(f"{path.name}: {path.stat().st_size} bytes", flush=True)


def export(model, inputs, path, dynamo, axes=None):
    names = list(inputs)
    arguments = tuple(inputs.values())
    if dynamo:
        shapes = tuple({axis: torch.export.Dim.AUTO for axis in axes[name]} for name in names) if axes else None
        program = torch.onnx.export(model, arguments, dynamo=True, input_names=names, output_names=["out"], dynamic_shapes=shapes, verbose=False)
        onnx.save(program.model_proto, path)
    else:
        torch.onnx.export(model, arguments, str(path), dynamo=False, input_names=names, output_names=["out"], opset_version=17, dynamic_axes=axes)
    # Stack traces and descriptions are most of a small file.
    file = onnx.load(path)
    file.graph.doc_string = ""
    del file.graph.value_info[:]
    for node in file.graph.node:
        node.doc_string = ""
        kept = [(p.key, p.value) for p in node.metadata_props if p.key == "namespace"]
        del node.metadata_props[:]
        for key, value in kept:
            entry = node.metadata_props.add()
            entry.key, entry.value = key, value
    for value in list(file.graph.input) + list(file.graph.output) + list(file.graph.initializer):
        del value.metadata_props[:]
    onnx.save(file, path)


def run(name, folder):
    torch.manual_seed(len(name) * 1000 + sum(map(ord, name)))
    model, inputs = CASES[name]()
    model.eval()
    settle(model)
    axes, others = OPEN.get(name, (None, None))
    exported, inputs = inputs, others() if others else inputs
    arrays = {f"in.{key}": value.numpy() for key, value in inputs.items()}
    out = model(*inputs.values())
    arrays["out.0"] = out.detach().numpy()
    if name in WITH_GRADIENTS:
        weight = torch.randn_like(out) / out.numel()
        (out * weight).sum().backward()
        arrays["loss.weight"] = weight.numpy()
        for key, parameter in model.named_parameters():
            if parameter.grad is not None and parameter.grad.numel() <= 6000:
                arrays[f"grad.{key}"] = parameter.grad.numpy()
    for exporter, dynamo in (("dynamo", True), ("script", False)):
        if dynamo and name in SCRIPT_ONLY:
            continue
        path = folder / f"{name}.{exporter}.onnx"
        try:
            with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
                export(model, exported, path, dynamo, axes)
            size = path.stat().st_size
            print(f"{path.name}: {size} bytes" + (" TOO LARGE" if size > LIMIT else ""), flush=True)
        except Exception as problem:  # an exporter that cannot do a family is a fact, not a failure of ours
            print(f"{path.name}: {type(problem).__name__}: {str(problem)[:300]}", flush=True)
            path.unlink(missing_ok=True)
    drop_fused(model, arrays, folder.glob(f"{name}.*.onnx"))
    np.savez_compressed(folder / f"{name}.npz", **arrays)


def drop_fused(model, arrays, paths):
    """Exporters fold batch norm into the convolution before it and store tied weights twice: other weights, other gradients."""
    state = model.state_dict()
    places = [value.data_ptr() for value in state.values()]
    for key, value in state.items():
        if places.count(value.data_ptr()) > 1:  # tied weights, which an exporter may store apart
            arrays.pop(f"grad.{key}", None)
    for path in paths:
        for tensor in onnx.load(path).graph.initializer:
            ours = state.get(tensor.name)
            values = onnx.numpy_helper.to_array(tensor)
            if ours is None or (values.shape == tuple(ours.shape) and np.array_equal(values, ours.numpy())):
                continue
            arrays.pop(f"grad.{tensor.name}", None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--wide", action="store_true", help="GPT-2 and BERT at their real width, without weights")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.wide:
        for name in options.names or WIDE:
            run_wide(name, options.folder)
        return 0
    for name in options.names or CASES:
        try:
            run(name, options.folder)
        except Exception:
            traceback.print_exc()
            print(f"{name}: not exported", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
