/** The WebSocket paths as `/v1/openapi.json` shows them; OpenAPI describes the opening handshake and one frame. */
import { z } from 'zod'
import type { GatewayRouteDescription } from '../../api/openapi/gateway-routes.ts'
import { dialects } from '../../languages/index.ts'

const errorFrame = z.looseObject({
  type: z.literal('error'),
  status: z.number().int().describe('The HTTP status that the same request would have had'),
  error: z.looseObject({ message: z.string(), type: z.string(), param: z.string().nullable(), code: z.string() }),
  request_id: z.string().describe("The handshake's request id, a dot, and the number of the frame"),
  verdictan: z.looseObject({ verdict: z.string(), reason_code: z.string() }).optional(),
})

const policyStages = ['pre_request', 'post_request', 'pre_response']

const described: readonly GatewayRouteDescription[] = [
  {
    method: 'GET',
    path: '/v1/chat/completions/ws',
    family: 'chat',
    summary: 'Open a WebSocket: each text frame is a chat request, answered by its events, one a frame, and [DONE]',
    permission: 'gateway:invoke',
    policyStages,
    errorFrame,
    failures: [400, 401, 402, 403, 405, 426, 503],
  },
  {
    method: 'GET',
    path: '/v1/responses/ws',
    family: 'responses',
    summary: 'Open a WebSocket: each text frame is a response.create event, answered by its events, one a frame',
    permission: 'gateway:invoke',
    policyStages,
    errorFrame,
    failures: [400, 401, 402, 403, 405, 426, 503],
  },
]

/** Those whose frames a dialect here can read. */
export const socketRouteDescriptions: readonly GatewayRouteDescription[] = described.filter((route) =>
  dialects.some(({ family }) => family === route.family),
)
