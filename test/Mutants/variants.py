"""The kernels whose mutants are run: one row per builder and form, each with
the smallest sizes at which every op that orders memory runs."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Size:
    """One problem; a window has how far back and ahead it reaches."""

    queries: int
    keys: int
    heads: int = 1
    kv_heads: int = 1
    window: tuple = ()


@dataclasses.dataclass(frozen=True)
class Variant:
    """A schedule with all its tiles; its sizes differ in nothing that makes
    another kernel."""

    name: str
    schedule: str
    sizes: tuple
    dtype: str = "bf16"
    head_dim: int = 32
    head_dim_v: int = 32
    mask: str = "none"
    machine: str = "h100_sxm, sms = 1"
    backward: bool = False
    kept: bool = False
    deterministic: bool = False
    precision: str = ""
    only: str = ""

    def module(self):
        """The functions as text, one per size."""
        functions = [self._function(number, size)
                     for number, size in enumerate(self.sizes)]
        return (f"module attributes {{attn.machine = #attn.machine<"
                f"{self.machine}>}} {{\n" + "\n".join(functions) + "\n}\n")

    def _function(self, number, size):
        n, m, h, g = size.queries, size.keys, size.heads, size.kv_heads
        d, e = self.head_dim, self.head_dim_v
        element = {"f8": "f8E4M3FN"}.get(self.dtype, self.dtype)
        result = "bf16" if self.dtype == "f8" else element
        blocks = -(-m // 256)
        types = {
            "q": f"tensor<1x{h}x{n}x{d}x{element}>",
            "k": f"tensor<1x{g}x{m}x{d}x{element}>",
            "v": f"tensor<1x{g}x{m}x{e}x{element}>",
            "o": f"tensor<1x{h}x{n}x{e}x{result}>",
            "do": f"tensor<1x{h}x{n}x{e}x{result}>",
            "lse": f"tensor<1x{h}x{n}xf32>",
            "w": f"tensor<1x{h}x{n}x{m}x{element}>",
            "r": f"tensor<1x{h}x{2 * blocks}x{n}xf32>",
        }
        mask = self.mask
        if mask == "window":
            mask = "window<%d, %d>" % size.window
        mask = "" if mask == "none" else f" mask({mask})"
        precision = f" precision({self.precision})" if self.precision else ""
        if self.backward:
            inputs = ["do", "q", "k", "v", "o", "lse"]
            results = ["q", "k", "v"]
            kept = ["w", "r"] if self.kept else []
            op = "attn.backward"
        else:
            inputs, kept = ["q", "k", "v"], []
            results = ["o", "lse"] + (["w", "r"] if self.kept else [])
            op = "attn.forward"
        weights = ""
        if kept:
            weights = (" weights(%w, %r : "
                       + ", ".join(types[name] for name in kept) + ")")
        attributes = f"schedule = #attn.schedule<{self.schedule}>"
        if self.deterministic:
            attributes = "deterministic, " + attributes
        arguments = ", ".join(f"%{name}: {types[name]}"
                              for name in inputs + kept)
        returned = ", ".join(types[name] for name in results)
        values = ", ".join(f"%{name}" for name in inputs)
        names = ", ".join(f"%0#{i}" for i in range(len(results)))
        return (f"  func.func @size_{number}({arguments}) -> ({returned}) {{\n"
                f"    %0:{len(results)} = {op} {values}{weights}{mask}"
                f"{precision} {{{attributes}}} : "
                + ", ".join(types[name] for name in inputs)
                + f" -> {returned}\n"
                f"    return {names} : {returned}\n  }}")


def _tiles(schedule, **tiles):
    """`flash, query = 64, key = 16`."""
    return ", ".join([schedule] + [f"{name} = {value}"
                                   for name, value in tiles.items()])


def _flash_mma_sync(name, stages, **options):
    return Variant(
        f"flash_mma_sync {name}",
        _tiles("flash", query=64, key=16, stages=stages, warps=2),
        (Size(150, 140), Size(70, 30), Size(9, 5)),
        head_dim_v=64, mask="causal", machine="a100_80g, sms = 3", **options)


def _flash_wgmma(name, staging=64, query_stages=1, ping_pong=1, persistent=1,
                 stages=2, key=48, **options):
    return Variant(
        f"flash_wgmma {name}",
        _tiles("flash", query=128, key=key, stages=stages,
               query_stages=query_stages, staging=staging,
               ping_pong=ping_pong, overlap=1, persistent=persistent),
        (Size(70, 30, window=(20, 10)), Size(128, 128, window=(20, 100)),
         Size(128, 256, window=(0, 100)), Size(300, 200, 2, 1, (20, 10)),
         Size(200, 250, window=(300, 20)), Size(300, 230, 2, 1, (20, 0)),
         Size(256, 256, window=(100, 20)), Size(300, 400, 2, 1, (150, 200))),
        head_dim_v=64, mask="window", **options)


def _streamed_query(name, across, stages, **options):
    return Variant(
        f"streamed_query_mma_sync {name}",
        _tiles("streamed_query", query=64, key=32, slice=32, piece=16,
               stages=stages, warps=4 * across, column_warps=across),
        (Size(70, 90), Size(40, 20), Size(9, 140)),
        head_dim=128, head_dim_v=80, mask="causal",
        machine="a100_80g, sms = 3", **options)


def _column_split(name, group, cluster, slots, resident, d, e, sizes,
                  mask="causal", **options):
    return Variant(
        f"column_split_wgmma {name}",
        _tiles("column_split", query=128, key=128, group=group,
               cluster=cluster, slots=slots, resident=resident),
        sizes, head_dim=d, head_dim_v=e, mask=mask,
        machine="h100_sxm, sms = 4", **options)


def _output_spill_mma_sync(name, key, stages, **options):
    return Variant(
        f"output_spill_mma_sync {name}",
        _tiles("output_spill", query=64, key=key, column=32, slice=16,
               stages=stages, warps=4),
        (Size(90, 70), Size(40, 300), Size(150, 90, 8, 2)),
        head_dim=48, head_dim_v=64, mask="causal",
        machine="a100_80g, sms = 1", **options)


def _output_spill_wgmma(name, part, slots, **options):
    return Variant(
        f"output_spill_wgmma {name}",
        _tiles("output_spill", query=128, key=512, column=128, part=part,
               slots=slots),
        (Size(200, 300, 2, 1, (100, 60)), Size(200, 700, window=(100, 600)),
         Size(500, 1300, 2, 1, (400, 0))),
        head_dim=72, head_dim_v=136, mask="window", **options)


def _score_spill_mma_sync(name, strip, stages, **options):
    return Variant(
        f"score_spill_mma_sync {name}",
        _tiles("score_spill", query=32, key=32, column=32, slice=16, warps=2,
               strip=strip, stages=stages),
        (Size(90, 70), Size(40, 300), Size(150, 90, 8, 2)),
        head_dim=48, head_dim_v=64, mask="causal",
        machine="a100_80g, sms = 1", **options)


def _score_spill_wgmma(name, merged, stages=2, key_block=128, column=64,
                       **options):
    kept = {"kept": 1} if options.get("kept") else {}
    parts = {"parts": 2} if options.get("dtype") == "f32" else {}
    return Variant(
        f"score_spill_wgmma {name}",
        _tiles("score_spill", query=128, key_block=key_block, column=column,
               strip=256, heads=2, **kept, **parts, stages=stages,
               merged=merged, persistent=1),
        (Size(300, 296, 2, 2, (100, 30)),),
        head_dim=72, head_dim_v=136, mask="window",
        machine="h100_sxm, sms = 8" if merged else "h100_sxm, sms = 1",
        **options)


def _flash_backward(name, key, query_block, beside, first_stores=0, stages=2,
                    overlap=1, short_first=0, **options):
    return Variant(
        f"flash_backward_wgmma {name}",
        _tiles("flash_backward", key=key, query_block=query_block,
               beside=beside, stages=stages, overlap=overlap,
               ordered=int(options.get("deterministic", False)),
               short_first=short_first, first_stores=first_stores,
               persistent=1),
        (Size(12, 300, 2, 2, (0, 114)), Size(70, 400, 2, 2, (20, 7)),
         Size(200, 300, 4, 2, (90, 30))),
        head_dim=80 if key != query_block else 32, head_dim_v=40,
        machine="h100_sxm, sms = 2",
        mask="causal" if short_first else "window", backward=True, **options)


def _split_backward_mma_sync(name, stages, separate=0, **options):
    return Variant(
        f"split_backward_mma_sync {name}",
        _tiles("split_backward", query=64, key_block=32, query_warps=4, key=64,
               query_block=32, key_warps=4, stages=stages, separate=separate),
        (Size(200, 200, 2, 1, (120, 40)), Size(40, 70, window=(90, 20))),
        head_dim=48, head_dim_v=80, mask="window",
        machine="a100_80g, sms = 2",
        backward=True, **options)


def _split_backward_wgmma(name, separate, query=128, key_block=64, key=128,
                          query_block=64, stages=2, value_stages=1, **options):
    return Variant(
        f"split_backward_wgmma {name}",
        _tiles("split_backward", query=query, key_block=key_block, key=key,
               query_block=query_block, separate=separate, stages=stages,
               value_stages=value_stages, persistent=1),
        (Size(12, 400, 2, 2, (0, 100)), Size(140, 200, 2, 2, (90, 30)),
         Size(200, 300, 4, 2, (90, 30)), Size(400, 300, window=(250, 150))),
        head_dim=48, head_dim_v=80, mask="window", backward=True, **options)


def _spill_backward_wgmma(name, merged, key_block=256, column=128, stages=3,
                          **options):
    kept = {"kept": 1} if options.get("kept") else {}
    return Variant(
        f"spill_backward_wgmma {name}",
        _tiles("spill_backward", query=128, key_block=key_block, key=128,
               column=column, query_block=64, strip=512, heads=2, **kept,
               stages=stages, merged=merged, persistent=1),
        (Size(100, 104, window=(100, 60)), Size(140, 272, window=(100, 60)),
         Size(520, 520, window=(520, 300))),
        head_dim=72, head_dim_v=40, mask="window",
        machine="h100_sxm, sms = 3" if merged else "h100_sxm, sms = 1",
        backward=True, **options)


def _spill_backward_mma_sync(name, slice, d, e, stages=2, **options):
    return Variant(
        f"spill_backward_mma_sync {name}",
        _tiles("spill_backward", query=128, key_block=128, key=128, column=64,
               query_block=64, strip=256, heads=1, slice=slice, warps=8,
               stages=stages),
        (Size(150, 390, 2, 1, (100, 50)),),
        head_dim=d, head_dim_v=e, mask="window",
        machine="a100_80g, sms = 2", backward=True, **options)


VARIANTS = (
    _flash_mma_sync("stages 1", 1),
    _flash_mma_sync("stages 2", 2),
    _flash_mma_sync("stages 3", 3),
    _flash_mma_sync("f32", 2, dtype="f32"),
    _flash_wgmma("bf16"),
    _flash_wgmma("two of Q", query_stages=2),
    _flash_wgmma("one tile", persistent=0),
    _flash_wgmma("no turns", ping_pong=0),
    _flash_wgmma("f8", dtype="f8", key=32),
    _flash_wgmma("f32", dtype="f32", staging=0, stages=1, key=32),
    _streamed_query("one warp", 1, 2),
    _streamed_query("two warps", 2, 3),
    _streamed_query("f32", 2, 2, dtype="f32"),
    _column_split("apart", 2, 1, 6, 3, 136, 136,
                  (Size(140, 140, 2, 2), Size(260, 300, 2, 2))),
    _column_split("streamed", 2, 2, 6, 2, 200, 136,
                  (Size(140, 140, 4, 4, (90, 30)),
                   Size(260, 500, 2, 2, (200, 90))), mask="window"),
    _output_spill_mma_sync("stages 2", 64, 2),
    _output_spill_mma_sync("stages 3", 32, 3),
    _output_spill_mma_sync("f32", 64, 2, dtype="f32"),
    _output_spill_wgmma("part 256", 256, 6),
    _output_spill_wgmma("part 128", 128, 4),
    _score_spill_mma_sync("stages 2", 64, 2),
    _score_spill_mma_sync("stages 3", 32, 3),
    _score_spill_wgmma("apart", 0),
    _score_spill_wgmma("merged", 1),
    _score_spill_wgmma("kept", 0, kept=True, key_block=256),
    _score_spill_wgmma("kept merged", 1, kept=True, key_block=256),
    _score_spill_wgmma("f32", 0, dtype="f32", stages=6),
    _score_spill_wgmma("f32 merged", 1, dtype="f32", stages=6),
    _flash_backward("behind", 128, 64, 0),
    _flash_backward("rows", 128, 128, 0, overlap=0),
    _flash_backward("halves", 128, 128, 0, 1, overlap=2),
    _flash_backward("beside", 128, 64, 1),
    _flash_backward("before", 64, 64, 2),
    _flash_backward("first stores", 128, 64, 0, 1),
    _flash_backward("first stores beside", 128, 128, 1, 1, overlap=0),
    _flash_backward("ordered", 128, 64, 0, deterministic=True),
    _flash_backward("ordered beside", 64, 64, 1, deterministic=True),
    _flash_backward("short first", 64, 64, 1, short_first=1,
                    deterministic=True),
    _split_backward_mma_sync("stages 1", 1),
    _split_backward_mma_sync("stages 2", 2),
    _split_backward_mma_sync("stages 3", 3),
    _split_backward_mma_sync("separate", 2, 1),
    _split_backward_mma_sync("f32", 2, dtype="f32"),
    _split_backward_wgmma("together", 0),
    _split_backward_wgmma("separate", 1),
    _split_backward_wgmma("wide", 0, 64, 128, 128, 128, 3, 2),
    _spill_backward_wgmma("apart", 0),
    _spill_backward_wgmma("merged", 1),
    _spill_backward_wgmma("kept", 0, kept=True),
    _spill_backward_wgmma("kept merged", 1, kept=True),
    _spill_backward_mma_sync("bf16", 32, 72, 40),
    _spill_backward_mma_sync("f32", 16, 16, 16, dtype="f32"),
)
