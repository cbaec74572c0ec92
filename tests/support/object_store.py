"""A server that speaks the S3 protocol on the loopback, with one bucket in it."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyarrow import fs

from elastream.lanes import Store

KEY, SECRET = "the-access-key", "the-secret-of-it"
BUCKET = "lanes"


@contextmanager
def object_store() -> Iterator[str]:
    """Gives its `host:port`."""
    # Moto takes half a second to import, which tests that need no server do not wait for.
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    remote = fs.S3FileSystem(
        access_key=KEY,
        secret_key=SECRET,
        endpoint_override=f"{host}:{port}",
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
    )
    remote.create_dir(BUCKET)
    yield f"{host}:{port}"
    server.stop()


def address(endpoint: str, path: str) -> str:
    return f"s3://{KEY}:{SECRET}@{path}?endpoint_override={endpoint}&scheme=http&region=us-east-1"


def flip_byte(store: Store, name: str, at: int) -> bytes:
    """Turn one byte of an object; gives what it was."""
    whole = store.read(name)
    store.write(name, whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
    return whole
