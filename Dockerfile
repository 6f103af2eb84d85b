# docker build -t gatehouse:0.2.0 . && docker run -p 7070:7070 -p 7080:7080 -v gatehouse:/data gatehouse:0.2.0
#
# Runs as a user without rights on a read-only root (`--read-only`): only /data is written. The first start writes the
# administrator token to /data/admin-token, not into the log. Healthy means that http://HOST:7080/healthz and
# http://HOST:7070/healthz answer 200; ready for traffic means that /readyz of both do. The image has no shell and no
# curl, so let the orchestrator ask.
FROM node:20-bookworm-slim AS build
WORKDIR /build
COPY package.json bun.lock bunfig.toml tsconfig.json ./
COPY src/sinks/patches src/sinks/patches
RUN npx -y bun@1.4.5 install --frozen-lockfile --production
COPY src src
COPY cli cli
ARG TARGETARCH
RUN case "${TARGETARCH:-$(uname -m)}" in arm64 | aarch64) target=linux-arm64 ;; *) target=linux-x64 ;; esac \
 && npx -y bun@1.4.5 cli/build.ts --target "$target" --outfile /build/out/gatehouse \
 && mkdir -m 0700 /build/data

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /build/out/gatehouse /usr/local/bin/gatehouse
COPY --from=build --chown=65532:65532 /build/data /data
ENV SERVICE_DATA=/data \
    SERVICE_CONTROL_PLANE_LISTEN=0.0.0.0:7070 \
    SERVICE_GATEWAY_LISTEN=0.0.0.0:7080
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 7070 7080
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/gatehouse"]
CMD ["up"]
