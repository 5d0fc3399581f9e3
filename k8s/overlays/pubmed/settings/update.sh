set -eu
citeray download s3://your-bucket/pubmed --no-baseline
citeray index update s3://your-bucket/pubmed --config /etc/citeray/settings.yaml
