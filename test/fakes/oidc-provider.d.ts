/** As much of `oidc-provider`, which has no types of its own, as tests use. */
declare module 'oidc-provider' {
  import type { IncomingMessage, Server, ServerResponse } from 'node:http'

  interface Interaction {
    uid: string
    prompt: { name: string; details: { missingOIDCScope?: string[] } }
    params: { client_id: string }
    session?: { accountId: string }
  }

  interface Grant {
    addOIDCScope(scope: string): void
    save(): Promise<string>
  }

  export default class Provider {
    constructor(issuer: string, configuration: object)
    callback(): (request: IncomingMessage, response: ServerResponse) => void
    listen(port: number, host: string): Server
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>
    Grant: new (of: {
      accountId: string
      clientId: string
    }) => Grant
  }
}
