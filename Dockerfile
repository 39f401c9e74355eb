# Windlass in a container, from Debian's packages and the pinned requirements.
#
#     docker build -t windlass .
#     docker run --rm -it windlass                             the demo: no key, no network
#     docker run --rm -it -e ANTHROPIC_API_KEY --user "$(id -u):$(id -g)" -e HOME=/tmp \
#       -v "$PWD:$PWD" -w "$PWD" windlass run plan.md --sandbox checkout --max-cost 5
#
# A container usually allows no user namespaces, so bubblewrap cannot build its walls in one. At level
# checkout the container is the wall: mount only the repository, and give it only the network it needs.
FROM debian:bookworm-slim

RUN apt-get update \
 && apt-get install --yes --no-install-recommends bubblewrap ca-certificates git python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*

COPY pyproject.toml README.md LICENSE /tmp/windlass/
COPY requirements /tmp/windlass/requirements
COPY src /tmp/windlass/src

RUN python3 -m venv /opt/windlass \
 && /opt/windlass/bin/pip install --no-cache-dir --require-hashes \
      -r /tmp/windlass/requirements/run.txt -r /tmp/windlass/requirements/build.txt \
 && /opt/windlass/bin/pip install --no-cache-dir --no-deps --no-build-isolation /tmp/windlass \
 && rm -rf /tmp/windlass

RUN useradd --create-home windlass
USER windlass
WORKDIR /home/windlass
ENV PATH=/opt/windlass/bin:/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8

ENTRYPOINT ["windlass"]
CMD ["demo", "--sandbox", "checkout"]
