"""The options of `citeray plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planning.coefficients import DEFAULT_FILE

Citations = Annotated[str, typer.Option(help="Size of the corpus, such as 38M.")]
Qps = Annotated[str, typer.Option(help="Questions a second.")]
P95 = Annotated[str, typer.Option(help="How late 19 of 20 questions may be, such as 2s.")]
QuestionPath = Annotated[str, typer.Option(help="What p95 is of: search or answer.")]
Calibrate = Annotated[
    bool, typer.Option("--calibrate", help="Measure this machine first, which takes minutes.")
]
Calibration = Annotated[
    Path | None,
    typer.Option(help=f"Coefficients to use, or to write; {DEFAULT_FILE} if not named."),
]
Sample = Annotated[
    list[str] | None,
    typer.Option(help="PubMed files to calibrate on or check with; none: generated citations."),
]
Check = Annotated[
    bool, typer.Option("--check", help="Build here for real, and tell the plan's error.")
]
CheckCitations = Annotated[str, typer.Option(help="Generated citations that --check builds.")]
NodeMemory = Annotated[str, typer.Option(help="Memory of a node, such as 64GB or 64Gi.")]
NodeCpus = Annotated[int, typer.Option(min=1, help="Cores of a node.")]
Nodes = Annotated[int | None, typer.Option(min=1, help="Nodes that build; none: as many as serve.")]
GpuNodes = Annotated[int, typer.Option(min=0, help="Nodes with GPUs that build.")]
GpusPerNode = Annotated[int, typer.Option(min=1, help="GPUs of such a node.")]
Shards = Annotated[
    int | None, typer.Option(min=1, max=4096, help="Shards; none: the fewest that do.")
]
UpdateCitations = Annotated[str, typer.Option(help="Citations of an update.")]
NodeHour = Annotated[float | None, typer.Option(min=0, help="Price of a node, hourly.")]
GpuHour = Annotated[float | None, typer.Option(min=0, help="Price of a GPU, hourly.")]
EmitConfig = Annotated[Path | None, typer.Option(help="Write settings for --config here.")]
EmitValues = Annotated[
    Path | None, typer.Option(help="Write values for the Kubernetes manifests here.")
]
Explain = Annotated[bool, typer.Option("--explain", help="Show each figure's formula.")]
