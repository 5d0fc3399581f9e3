# Run again it goes on: what is fetched is not fetched again, what is staged not embedded again.
set -eu
citeray download s3://your-bucket/pubmed
citeray index build s3://your-bucket/pubmed --config /etc/citeray/settings.yaml
citeray index verify --config /etc/citeray/settings.yaml
