/** What coding agents ask beside models, in `/v1/openapi.json`. The control plane describes its own OAuth routes. */
import { z } from 'zod'
import type { GatewayRouteDescription } from '../../api/openapi/gateway-routes.ts'
import { managedSettingsPath } from '../agent-protocol/managed-settings.ts'
import { signals } from '../telemetry-intake/attribution.ts'
import { intakePath } from '../telemetry-intake/intake.ts'

export const agentRouteDescriptions: readonly GatewayRouteDescription[] = [
  {
    method: 'GET',
    path: managedSettingsPath,
    family: 'managed_settings',
    summary: 'Returns the managed settings for the owner of the token; 404 where there are none',
    permission: 'gateway:invoke',
    policyStages: [],
    reply: z.object({
      uuid: z.string(),
      checksum: z.string().describe('SHA-256 of the settings with the members of each object in order; also the ETag'),
      settings: z.record(z.string(), z.unknown()),
    }),
    otherSuccess: { 304: 'The settings are those that If-None-Match names' },
    failures: [400, 401, 403, 404, 405, 503],
    errors: 'messages',
  },
  ...signals.map(
    (signal): GatewayRouteDescription => ({
      method: 'POST',
      path: intakePath(signal),
      family: 'telemetry',
      summary: `Passes ${signal} of a client on to the collector (OTLP over HTTP; protobuf, or JSON)`,
      permission: 'gateway:invoke',
      policyStages: [],
      request: z.looseObject({}),
      reply: z.looseObject({}),
      alsoAnswers: ['application/x-protobuf'],
      failures: [400, 401, 403, 405, 408, 413, 415, 429, 501, 503],
    }),
  ),
]
