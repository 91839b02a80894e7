# The service: `docker build -t flowise-dev-agent .`; docs/operations.md says how to run it.
#
# Pin the base of a release by its digest: --build-arg PYTHON=python:3.11-slim@sha256:...
ARG PYTHON=python:3.11-slim

FROM ${PYTHON} AS build
WORKDIR /src
COPY locks locks
RUN python -m venv /opt/builder
RUN /opt/builder/bin/pip install --no-cache-dir --require-hashes -r locks/build.lock
RUN python -m venv /opt/agent
RUN /opt/agent/bin/pip install --no-cache-dir --no-compile --require-hashes -r locks/runtime.lock
COPY . .
# What `--version` says beside the release: --build-arg SOURCE_COMMIT=$(git rev-parse HEAD)
ARG SOURCE_COMMIT
RUN /opt/builder/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /dist .
RUN /opt/agent/bin/pip install --no-compile --no-deps --no-index --find-links /dist flowise-dev-agent
# Compiled is what a start imports, a third of all.
RUN /opt/agent/bin/python -c "import flowise_dev_agent.api, flowise_dev_agent.cli.serve, flowise_dev_agent.ops.worker"
RUN /opt/agent/bin/pip uninstall --yes pip setuptools

FROM ${PYTHON}
COPY --from=build /opt/agent /opt/agent
# Nothing is written: run it with a read-only root. /tmp holds what is attached while it is read.
ENV PATH=/opt/agent/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65534:65534
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=6 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/live')"]
ENTRYPOINT ["flowise-dev-agent"]
CMD ["serve"]
