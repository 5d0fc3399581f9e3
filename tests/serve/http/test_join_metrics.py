import asyncio

from prometheus_client.parser import text_string_to_metric_families

from serve.http.join_metrics import fetch_metrics, join_metrics
from tests.serve.http_server import free_port
from tests.serve.scripted_server import scripted

ONE = """# HELP citeray_requests_total HTTP requests.
# TYPE citeray_requests_total counter
citeray_requests_total{node="a"} 3
# TYPE citeray_seconds histogram
citeray_seconds_bucket{le="1.0",node="a"} 2
citeray_seconds_bucket{le="+Inf",node="a"} 3
citeray_seconds_count{node="a"} 3
citeray_seconds_sum{node="a"} 1.5
"""
TWO = ONE.replace('"a"', '"b"') + "# TYPE only_here gauge\nonly_here 1\n"


def samples(page: bytes) -> dict[tuple[str, str], float]:
    families = text_string_to_metric_families(page.decode())
    return {
        (sample.name, sample.labels.get("node", "")): sample.value
        for family in families
        for sample in family.samples
        if sample.labels.get("le", "+Inf") == "+Inf"
    }


def test_samples_of_all_nodes_are_grouped_by_metric() -> None:
    page = join_metrics([ONE, TWO])
    assert page.count(b"# TYPE citeray_requests_total") == 1
    found = samples(page)
    assert found["citeray_requests_total", "a"] == found["citeray_requests_total", "b"] == 3
    assert found["citeray_seconds_count", "b"] == 3
    assert found["only_here", ""] == 1


def test_unreachable_node_is_left_out() -> None:
    with scripted(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + ONE.encode()) as server:
        urls = [f"{server.url}/metrics", f"http://127.0.0.1:{free_port()}/metrics"]
        page = asyncio.run(fetch_metrics(urls))
    assert samples(page)["citeray_requests_total", "a"] == 3
