/** What the routes of people need of the rest of the control plane. */
import type { TokenDependencies } from '../tokens/minting.ts'
import type { SessionSettings } from './session.ts'

export interface MemberDependencies extends TokenDependencies {
  settings: SessionSettings
  /** Addresses as people see them; functions, for a port may be chosen when the server listens. */
  baseUrl(): string
  consoleUrl(): string
  /** The network address a request came from, as the server saw it: no header is believed here. */
  addressOf(request: Request): string
}
