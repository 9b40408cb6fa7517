# Berth in a container: `docker build -t berth .`, then `docker run --rm berth` runs the main job (make demo).
FROM python:3.12-slim-bookworm

# Debian keeps no older versions of a package, so that pinned ones would soon not install.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends git make stress-ng \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 berth

WORKDIR /home/berth/berth
COPY --chown=berth:berth . .
RUN chown berth:berth .

USER 1000
RUN make setup

HEALTHCHECK --interval=1m --timeout=30s --start-period=5m CMD [".venv/bin/python", "-c", "import berth"]

CMD ["make", "demo"]
