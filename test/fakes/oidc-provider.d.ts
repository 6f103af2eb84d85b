/** As much of `oidc-provider`, which has no types of its own, as tests use. */
declare module 'oidc-provider' {
  import type { IncomingMessage, Server, ServerResponse } from 'node:http'

  interface Interaction {
    uid: string
    prompt: { name: string; details: { missingOIDCScope?: string[]; missingResourceScopes?: Record<string, string[]> } }
    params: { client_id: string }
    session?: { accountId: string }
  }

  interface Grant {
    addOIDCScope(scope: string): void
    addResourceScope(resource: string, scope: string): void
    save(): Promise<string>
    destroy(): Promise<void>
  }

  interface AccessToken {
    accountId: string
    aud: string
    scope: string
    iat: number
  }

  export default class Provider {
    constructor(issuer: string, configuration: object)
    callback(): (request: IncomingMessage, response: ServerResponse) => void
    listen(port: number, host: string): Server
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>
    on(event: 'grant.success', listener: (context: { oidc: { params: { grant_type: string } } }) => void): void
    AccessToken: { find(secret: string): Promise<AccessToken | undefined> }
    Grant: {
      new (of: { accountId: string; clientId: string }): Grant
      find(id: string): Promise<Grant | undefined>
    }
  }
}
