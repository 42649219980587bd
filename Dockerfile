# One image for `posthorn serve`, `posthorn worker`, `posthorn migrate` and every other command: docs/operations.md.
ARG PYTHON=3.13-slim-trixie

FROM python:${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY . .
# Every dependency has a wheel: nothing is compiled, and what would have to be stops the build.
# hadolint ignore=DL3013
RUN pip wheel --only-binary :all: --no-binary posthorn --wheel-dir /wheels '.[otel]' \
    && python -m venv --without-pip /opt/posthorn \
    && pip --python /opt/posthorn install --no-index --find-links /wheels 'posthorn[otel]'

FROM python:${PYTHON}
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin posthorn
COPY --from=build /opt/posthorn /opt/posthorn
ENV PATH=/opt/posthorn/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# By number, so that an orchestrator sees that it is not root's.
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
# Of `serve`, by the port below. Not GET /ready, which fails when the database is away: a new process would not bring it back.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "from http.client import HTTPConnection as Call; call = Call('127.0.0.1', 8080, timeout=4); \
call.request('GET', '/v1/health'); raise SystemExit(call.getresponse().status != 200)"]
ENTRYPOINT ["posthorn"]
CMD ["serve", "--host", "0.0.0.0"]
