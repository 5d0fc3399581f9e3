# The first two update files only: PubMed's updates are meant for its whole baseline.
set -eu
citeray download s3://your-bucket/small/pubmed --no-baseline --files 2
citeray index update s3://your-bucket/small/pubmed --allow-gap --config /etc/citeray/settings.yaml \
  --set encoder.device=cpu --set encoder.dtype=float32 --set encoder.gpus=0 \
  --set index.build_gpus=0
