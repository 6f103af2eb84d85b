/** The WebSocket paths in `/v1/openapi.json`; OpenAPI describes the opening handshake and one frame. */
import { z } from 'zod'
import type { GatewayRouteDescription } from '../../api/openapi/gateway-routes.ts'
import { families, familyNames, hasSockets, type SocketFamily } from '../../languages/families.ts'

const errorFrame = z.looseObject({
  type: z.literal('error'),
  status: z.number().int().describe('The HTTP status that the same request would have had'),
  error: z.looseObject({ message: z.string(), type: z.string(), param: z.string().nullable(), code: z.string() }),
  request_id: z.string().describe("The handshake's request id, a dot, and the number of the frame"),
  verdictan: z.looseObject({ verdict: z.string(), reason_code: z.string() }).optional(),
})

const sessionError = z.looseObject({
  type: z.literal('error'),
  event_id: z.string(),
  error: z.looseObject({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable(),
    code: z.string(),
    event_id: z.string().nullable().describe("The event_id of the client's event that was refused"),
  }),
  verdictan: z.looseObject({ verdict: z.string(), reason_code: z.string() }).optional(),
})

/** What differs for realtime sessions. */
const ofSession = {
  errorFrame: sessionError,
  query: z.object({ model: z.string().min(1).describe('A model of a provider that has realtime sessions') }),
  failures: [400, 401, 402, 403, 404, 405, 422, 426, 503],
}

/** What a frame of each family's WebSocket holds. */
const summaries: Readonly<Record<SocketFamily, string>> = {
  chat: 'Open a WebSocket: each text frame is a chat request, answered by its events, one a frame, and [DONE]',
  realtime:
    'Open a realtime session with the model of ?model=: events of the generally available realtime API in both directions; each response is one governed request',
  responses:
    'Open a WebSocket: each text frame is a response.create event, answered by its events, one a frame; it may continue the last response of the connection',
}

const failures = [400, 401, 402, 403, 405, 426, 503]

/** A path that requests without an upgrade share is described with those. */
export const socketRouteDescriptions: readonly GatewayRouteDescription[] = familyNames
  .filter(hasSockets)
  .flatMap((family) => {
    const { webSockets = [], permission, policyStages } = families[family]
    return webSockets
      .filter(({ shared }) => shared !== true)
      .map(({ path }): GatewayRouteDescription => {
        const summary = summaries[family]
        const described = family === 'realtime' ? ofSession : { errorFrame, failures }
        return { method: 'GET', path, family, summary, permission, policyStages, ...described }
      })
  })
