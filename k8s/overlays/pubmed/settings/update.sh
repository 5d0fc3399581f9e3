set -eu
citeray download s3://your-bucket/pubmed --no-baseline
# What a day adds to a shard is too little for a GPU's graph.
citeray index update s3://your-bucket/pubmed --config /etc/citeray/settings.yaml \
  --set index.build_gpus=0
