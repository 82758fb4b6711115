"""Small configurations of many model families, for try_families.py: name -> a function that gives (model, inputs of (batch, length), open
axes by input). Random weights. What a version of transformers or timm does not have is left out when it is asked for."""
import torch
import torchvision
import transformers
from torch import nn
from torch.nn import functional

from export_onnx import Logits

FAMILIES = {}
TOKENS = {0: "batch", 1: "seq"}


def ids(batch, length):
    return torch.randint(3, 100, (batch, length))


def mask(batch, length):
    out = torch.ones(batch, length, dtype=torch.long)
    out[-1, length - 3:] = 0
    return out


def configured(name, config, **options):
    made = getattr(transformers, config)(**options)
    if hasattr(made, "use_cache"):
        made.use_cache = False
    return getattr(transformers, name)(made)


def language(key, name, kind="ForCausalLM", config=None, pick="logits", masked=True, **options):
    def make():
        def inputs(batch, length):
            return {"input_ids": ids(batch, length), **({"attention_mask": mask(batch, length)} if masked else {})}
        names = list(inputs(1, 4))
        return Logits(configured(name + kind, config or f"{name}Config", **options), pick, names), inputs, dict.fromkeys(names, TOKENS)
    FAMILIES[key] = make


def translation(key, name, kind="ForConditionalGeneration", **options):
    def make():
        def inputs(batch, length):
            return {"input_ids": ids(batch, length), "attention_mask": mask(batch, length), "decoder_input_ids": ids(batch, length)}
        names = list(inputs(1, 4))
        return Logits(configured(name + kind, f"{name}Config", **options), "logits", names), inputs, dict.fromkeys(names, TOKENS)
    FAMILIES[key] = make


def seeing(key, name, kind="ForImageClassification", pick="logits", size=32, **options):
    def make():
        model = Logits(configured(name + kind, f"{name}Config", **options), pick, ["pixel_values"])
        return model, lambda batch, _: {"pixel_values": torch.randn(batch, 3, size, size)}, {"pixel_values": {0: "batch"}}
    FAMILIES[key] = make


def hearing(key, name, kind="ForCTC", shape=None, pick="logits", given="input_values", **options):
    def make():
        model = Logits(configured(name + kind, f"{name}Config", **options), pick, [given])
        return (model, lambda batch, length: {given: torch.randn(batch, *(shape or (280 + 10 * length,)))},
                {given: {0: "batch"} if shape else TOKENS})
    FAMILIES[key] = make


def network(key, build, *shape):
    """'s' in the shape is an open length."""
    def make():
        axes = {0: "batch", **{i + 1: f"size{i}" for i, size in enumerate(shape) if size == "s"}}
        return build(), lambda batch, length: {"x": torch.randn(batch, *(length if size == "s" else size for size in shape))}, {"x": axes}
    FAMILIES[key] = make


def timm_model(key, name, size=64, **options):
    def build():
        import timm
        return timm.create_model(name, pretrained=False, num_classes=10, **options)
    network(key, build, 3, size, size)


SMALL = dict(vocab_size=120, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=40)
SHARED = dict(num_key_value_heads=2, **SMALL)
GPT = dict(vocab_size=120, n_embd=32, n_layer=2, n_head=4, n_positions=40)
T5 = dict(vocab_size=120, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
MASKED = "ForMaskedLM"

for row in ("Ernie", "MegatronBert", "IBert", "RobertaPreLayerNorm", "Data2VecText", "LayoutLM", "MPNet", "Camembert", "XLMRoberta"):
    language(row.lower(), row, MASKED, **SMALL)
for row in ("Albert", "Electra"):
    language(row.lower(), row, MASKED, embedding_size=16, **SMALL)
for row in ("ConvBert", "SqueezeBert", "RoFormer"):
    language(row.lower(), row, MASKED, embedding_size=32, **SMALL)
for row in ("BioGpt", "Persimmon", "GPTNeoX", "Phi", "Olmo"):
    language(row.lower(), row, **SMALL)
for row in ("Olmo2", "Nemotron", "StableLm", "Qwen2", "Granite", "Starcoder2", "Cohere"):
    language(row.lower(), row, **SHARED)
for row in ("Mistral", "Exaone4"):
    language(row.lower(), row, sliding_window=6, **SHARED)
for row in ("Gemma", "Qwen3"):
    language(row.lower(), row, head_dim=8, **SHARED)
for row in ("GPTJ", "CodeGen"):
    language(row.lower(), row, rotary_dim=4, **GPT)
language("mobilebert", "MobileBert", MASKED, embedding_size=16, intra_bottleneck_size=16, true_hidden_size=16, **SMALL)
language("rembert", "RemBert", MASKED, input_embedding_size=16, output_embedding_size=16, **SMALL)
language("esm", "Esm", MASKED, pad_token_id=1, mask_token_id=2, position_embedding_type="rotary", **SMALL)
language("yoso", "Yoso", MASKED, use_expectation=True, **SMALL)
language("distilbert", "DistilBert", MASKED, vocab_size=120, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=40)
language("deberta_v1", "Deberta", MASKED, relative_attention=True, pos_att_type=["c2p", "p2c"], **SMALL)
language("xlnet", "XLNet", "LMHeadModel", vocab_size=120, d_model=32, n_layer=2, n_head=4, d_inner=64)
language("modernbert", "ModernBert", MASKED, pad_token_id=0, **SMALL)
language("bigbird", "BigBird", MASKED, attention_type="original_full", **SMALL)
language("bloom", "Bloom", vocab_size=120, hidden_size=32, n_layer=2, n_head=4)
language("falcon", "Falcon", vocab_size=120, hidden_size=32, num_hidden_layers=2, num_attention_heads=4)
language("mpt", "Mpt", vocab_size=120, d_model=32, n_layers=2, n_heads=4, max_seq_len=40)
language("opt", "OPT", vocab_size=120, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, max_position_embeddings=40, word_embed_proj_dim=32)
language("phi3", "Phi3", pad_token_id=0, **SMALL)
language("gpt_bigcode", "GPTBigCode", **GPT)
language("openai_gpt", "OpenAIGPT", "LMHeadModel", **GPT)
language("gemma3", "Gemma3", "ForCausalLM", "Gemma3TextConfig", head_dim=8, sliding_window=6, **SHARED)
language("smollm3", "SmolLM3", pad_token_id=0, **SHARED)
language("mixtral", "Mixtral", num_local_experts=3, num_experts_per_tok=2, **SHARED)
for row in ("XLM", "Flaubert"):
    language(row.lower(), row, "WithLMHeadModel", vocab_size=120, emb_dim=32, n_layers=2, n_heads=4, max_position_embeddings=40)
language("falcon_mamba", "FalconMamba", masked=False, vocab_size=120, hidden_size=16, state_size=4, num_hidden_layers=2)
language("recurrent_gemma", "RecurrentGemma", vocab_size=120, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=64, lru_width=32,
         attention_window_size=8, head_dim=8)
language("lfm2", "Lfm2", block_ff_dim=64, layer_types=["conv", "full_attention"], **SHARED)
language("bertgeneration", "BertGeneration", "Decoder", is_decoder=True, **SMALL)
language("splinter", "Splinter", "Model", pick="last_hidden_state", **SMALL)
language("gpt2_tokens", "GPT2", "ForTokenClassification", num_labels=5, **GPT)
language("bert_sequence", "Bert", "ForSequenceClassification", num_labels=4, **SMALL)
language("bert_answer", "Bert", "ForQuestionAnswering", pick="start_logits", **SMALL)
language("t5_encoder", "T5", "EncoderModel", pick="last_hidden_state", feed_forward_proj="gated-gelu", **T5)

PAIR = dict(vocab_size=120, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
            decoder_ffn_dim=64, max_position_embeddings=40)
for row in ("Bart", "MBart", "Pegasus", "Blenderbot", "M2M100", "PLBart", "Mvp"):
    translation(row.lower(), row, **PAIR)
for row in ("MT5", "UMT5"):
    translation(row.lower(), row, **T5)
translation("bigbird_pegasus", "BigBirdPegasus", attention_type="original_full", **PAIR)
translation("prophetnet", "ProphetNet", vocab_size=120, hidden_size=32, num_encoder_layers=1, num_decoder_layers=1, num_encoder_attention_heads=4,
            num_decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=40, ngram=2, num_buckets=8)

PATCHES = dict(image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
STAGES = dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1])
HEADS = dict(num_attention_heads=[1, 2, 2, 4])
WINDOWS = dict(image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 4], window_size=4)
for row in ("DeiT", "Dinov2", "IJepa", "ViTMSN"):
    seeing(row.lower(), row, **({k: v for k, v in PATCHES.items() if k != "intermediate_size"} if row == "Dinov2" else PATCHES))
for row in ("Beit", "Data2VecVision"):
    seeing(row.lower(), row, use_relative_position_bias=True, **PATCHES)
for row in ("ConvNextV2", "PoolFormer"):
    seeing(row.lower(), row, **STAGES)
for row in ("ResNet", "RegNet"):
    seeing("hf_" + row.lower(), row, size=64, embedding_size=8, **STAGES, **({"groups_width": 8} if row == "RegNet" else {}))
for row in ("MobileNetV1", "MobileNetV2"):
    seeing("hf_" + row.lower(), row, size=64, image_size=64, depth_multiplier=0.35)
seeing("swinv2", "Swinv2", **WINDOWS)
seeing("maskformer_swin", "MaskFormerSwin", "Model", "pooler_output", **WINDOWS)
seeing("pvt_v2", "PvtV2", size=64, image_size=64, sr_ratios=[8, 4, 2, 1], **STAGES, **HEADS)
seeing("glpn", "GLPN", "ForDepthEstimation", "predicted_depth", 64, num_encoder_blocks=4, decoder_hidden_size=8, **STAGES, **HEADS)
seeing("swin2sr", "Swin2SR", "ForImageSuperResolution", "reconstruction", 16, image_size=16, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4)
seeing("clip_vision", "CLIPVision", "ModelWithProjection", "image_embeds", projection_dim=16, **PATCHES)
seeing("siglip", "SiglipVision", "Model", "pooler_output", **PATCHES)
seeing("yolos", "Yolos", "ForObjectDetection", num_detection_tokens=5, **{**PATCHES, "image_size": [32, 32]})
seeing("sam_vision", "SamVision", "Model", "last_hidden_state", 64, image_size=64, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, mlp_dim=64,
       output_channels=16, window_size=4, global_attn_indexes=[1], num_pos_feats=8)

SPEECH = dict(vocab_size=20, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64, conv_dim=(16, 16), conv_stride=(5, 2),
              conv_kernel=(10, 3), num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4)
FILM = dict(image_size=16, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64)
for row in ("SEW", "UniSpeech", "Data2VecAudio", "Hubert"):
    hearing(row.lower(), row, **SPEECH)
hearing("timesformer", "Timesformer", "ForVideoClassification", (2, 3, 16, 16), given="pixel_values", patch_size=8, num_frames=2, **FILM)
hearing("videomae", "VideoMAE", "ForVideoClassification", (4, 3, 16, 16), given="pixel_values", patch_size=8, num_frames=4, tubelet_size=2, **FILM)
hearing("vivit", "Vivit", "ForVideoClassification", (4, 3, 16, 16), given="pixel_values", num_frames=4, tubelet_size=[2, 8, 8], **FILM)

TINY = dict(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4)
timm_model("cait", "cait_xxs24_224", 32, **TINY)
timm_model("vit_relpos", "vit_relpos_small_patch16_224", 32, **TINY)
timm_model("sequencer", "sequencer2d_s", 32, img_size=32, patch_sizes=(8, 1, 1, 1), embed_dims=(16,) * 4, hidden_sizes=(8,) * 4, layers=(1,) * 4)
timm_model("starnet", "starnet_s1", base_dim=8, depths=(1,) * 4)
timm_model("mambaout", "mambaout_femto", depths=(1,) * 4, dims=(8, 16, 24, 32))
timm_model("inception_next", "inception_next_atto", depths=(1,) * 4, dims=(16, 32, 48, 64))
timm_model("pit", "pit_ti_224", img_size=64, base_dims=(8, 8, 8), depth=(1, 1, 1), heads=(2, 2, 4))
timm_model("resnetv2", "resnetv2_50", layers=(1,) * 4, channels=(32, 32, 64, 64), stem_chs=16)
timm_model("twins", "twins_svt_small", img_size=64, embed_dims=(16, 16, 32, 32), num_heads=(2, 2, 4, 4), depths=(1,) * 4, wss=(4, 4, 4, 2))


class Picked(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)["out"]


def fcn():
    from torchvision.models._utils import IntermediateLayerGetter
    body = IntermediateLayerGetter(nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU()), {"2": "out"})
    return Picked(torchvision.models.segmentation.FCN(body, torchvision.models.segmentation.fcn.FCNHead(8, 4)))


def mvit():
    from torchvision.models.video.mvit import MSBlockConfig, MViT
    blocks = [MSBlockConfig(1, 16, 32, [3, 3, 3], [3, 3, 3], [1, 2, 2], [1, 4, 4]), MSBlockConfig(2, 32, 32, [3, 3, 3], [3, 3, 3], [1, 1, 1], [1, 2, 2])]
    return MViT((32, 32), 4, blocks, residual_pool=True, residual_with_cls_embed=False, rel_pos_embed=True, proj_after_attn=True, num_classes=10,
                stochastic_depth_prob=0.0)


def r2plus1d():
    whole = torchvision.models.video.r2plus1d_18(weights=None)
    return nn.Sequential(whole.stem, whole.layer1[0], nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(64, 5))


def efficientnet_v2():
    from torchvision.models.efficientnet import EfficientNet, FusedMBConvConfig, MBConvConfig
    return EfficientNet([FusedMBConvConfig(1, 3, 1, 8, 8, 1), FusedMBConvConfig(4, 3, 2, 8, 16, 1), MBConvConfig(4, 3, 2, 16, 24, 1)], 0.0, 0.0,
                        num_classes=10, last_channel=32)


network("fcn", fcn, 3, 40, 40)
network("lraspp", lambda: Picked(torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)), 3, 64, 64)
network("mvit", mvit, 3, 4, 32, 32)
network("r2plus1d", r2plus1d, 3, 4, 24, 24)
network("s3d", lambda: nn.Sequential(*list(torchvision.models.video.s3d(num_classes=5).features)[:6], nn.AdaptiveAvgPool3d(1), nn.Flatten()), 3, 6, 32, 32)
network("efficientnet_v2", efficientnet_v2, 3, 48, 48)


class Signal(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.g, self.t, self.i, self.o = nn.Conv1d(4, 8, 5, padding=2), nn.GroupNorm(2, 8), nn.ConvTranspose1d(8, 8, 4, 2, 1), nn.InstanceNorm1d(8, affine=True), nn.Conv1d(8, 3, 1)

    def forward(self, x):
        return self.o(functional.silu(self.i(self.t(functional.gelu(self.g(self.a(x)))))))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer, self.out = getattr(nn, kind)(5, 8, 2, batch_first=True, bidirectional=True), nn.Linear(16, 4)

    def forward(self, x):
        return self.out(self.layer(x)[0])


network("signal", Signal, 4, "s")
for row in ("RNN", "GRU", "LSTM"):
    network(row.lower(), lambda row=row: Recurrent(row), "s", 5)
