/** A compose file for one host: a libSQL primary, a control plane, a gateway. */
import { defineCommand } from 'citty'
import { version } from '../../src/version.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { requireImageName } from './image-name.ts'

export const compose = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Print a compose file: a libSQL primary, a control plane and a gateway on one host' },
    args: { image: { type: 'string', default: `gatehouse:${version}`, description: 'The image to run' } },
    async run({ args: { image } }) {
      requireImageName(image)
      await terminal.write(composeFile(image))
    },
  })

const libsqlImage = 'ghcr.io/tursodatabase/libsql-server:v0.24.32'

const primary = (name: string, port: number): string => `  ${name}:
    image: ${libsqlImage}
    network_mode: service:host
    depends_on: [host]
    restart: unless-stopped
    environment:
      SQLD_NODE: primary
      SQLD_HTTP_LISTEN_ADDR: 127.0.0.1:${port}
      SQLD_AUTH_JWT_KEY_FILE: /keys/${name}-public.pem
    volumes:
      - ${name}-data:/var/lib/sqld
      - ./keys/${name}-public.pem:/keys/${name}-public.pem:ro
`

const hardened = `    read_only: true
    cap_drop: [ALL]
    security_opt: [no-new-privileges:true]
    stop_grace_period: 45s
    restart: unless-stopped
`

export const composeFile = (
  image: string,
): string => `# One host. All share one network, the one of the service \`host\`, so that nothing passes in the clear between them.
#
#   1. gatehouse install keys keys && sudo chown 65532 keys/state-signing.pem
#   2. docker compose up -d control-plane
#      The administrator token: docker compose cp control-plane:/data/admin-token .
#   3. gatehouse token create --name local --purpose gateway-runtime --gateway-id ID --team-id ID > token
#      printf 'SERVICE_API_TOKEN=%s\\n' "$(cat token)" > keys/gateway.env && rm token
#   4. docker compose up -d
#
# Put what terminates TLS in front of both ports before others may reach them.
name: gatehouse
services:
  host:
    image: registry.k8s.io/pause:3.10
    restart: unless-stopped
    ports: ["127.0.0.1:7070:7070", "127.0.0.1:7080:7080"]
${primary('state', 8081)}${primary('ledger', 8082)}  control-plane:
    image: "${image}"
    command: [control-plane]
    network_mode: service:host
    depends_on: [state, ledger]
    env_file: [keys/control-plane.env]
    environment:
      SERVICE_CONTROL_PLANE_LISTEN: 0.0.0.0:7070
      SERVICE_BASE_URL: http://127.0.0.1:7070
      SERVICE_GATEWAY_URL: http://127.0.0.1:7080
      SERVICE_STATE_URL: http://127.0.0.1:8081
      SERVICE_LEDGER_URL: http://127.0.0.1:8082
      SERVICE_STATE_SIGNING_KEY_FILE: /keys/state-signing.pem
    volumes:
      - control-plane-data:/data
      - ./keys/state-signing.pem:/keys/state-signing.pem:ro
${hardened}  gateway:
    image: "${image}"
    command: [gateway]
    network_mode: service:host
    depends_on: [control-plane]
    env_file: [{ path: keys/gateway.env, required: false }]
    environment:
      SERVICE_GATEWAY_LISTEN: 0.0.0.0:7080
      SERVICE_API_URL: http://127.0.0.1:7070
    volumes: [gateway-data:/data]
${hardened}volumes:
  state-data:
  ledger-data:
  control-plane-data:
  gateway-data:
`
