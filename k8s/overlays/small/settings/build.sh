# The first two files of the baseline: 60,000 citations.
set -eu
citeray download s3://your-bucket/small/pubmed --files 2
citeray index build s3://your-bucket/small/pubmed --config /etc/citeray/settings.yaml
citeray index verify --config /etc/citeray/settings.yaml
