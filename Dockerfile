# One machine. docker-compose.yml starts three of them.

FROM python:3.11-slim AS made
WORKDIR /source
COPY . .
# What is fetched is checked against the lock files; for rappd itself nothing is fetched.
RUN python -m venv /opt/rappd \
 && pip="/opt/rappd/bin/python -m pip --no-cache-dir --disable-pip-version-check install" \
 && $pip --require-hashes -r requirements/build.lock \
 && $pip --require-hashes -r requirements/runtime.lock \
 && $pip --no-deps --no-build-isolation .

FROM python:3.11-slim
# Machines are reached by ssh for snapshots of a neighborhood, and clones of GitHub are made by git.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends git openssh-client \
 && rm -rf /var/lib/apt/lists/*
# A home for each machine of docker-compose.yml: a new volume takes its owner from the folder it is mounted on.
RUN useradd --uid 10001 --home-dir /homes --no-create-home --shell /usr/sbin/nologin rappd \
 && install -d -m 0755 -o rappd /homes \
 && install -d -m 0700 -o rappd /homes/home /homes/desk /homes/pi /homes/shed
COPY --from=made /opt/rappd /opt/rappd
COPY containers /app/containers
ENV PATH=/opt/rappd/bin:$PATH LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 RAPP_HOME=/homes/home
USER rappd
WORKDIR /homes
EXPOSE 7443
HEALTHCHECK --interval=5s --timeout=20s --start-period=60s --retries=6 CMD ["rappd", "status", "--json"]
CMD ["/app/containers/machine.sh"]
