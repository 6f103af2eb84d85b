/** What `/v1/openapi.json` says of the bodies of one route. */
import type { GatewayRouteDescription } from '../../api/openapi/gateway-routes.ts'

export type Described = Pick<
  GatewayRouteDescription,
  'summary' | 'request' | 'requestType' | 'reply' | 'alsoAnswers' | 'otherSuccess' | 'takesApiKey' | 'errors'
>
