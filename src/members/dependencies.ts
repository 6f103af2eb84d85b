/** What the routes of people need of the rest of the control plane. */
import type { Statement } from '../store/statement.ts'
import type { Actor } from '../tokens/creation/minting.ts'
import type { TokenDependencies } from '../tokens/dependencies.ts'
import type { SessionSettings } from './sessions/session.ts'

export interface MemberDependencies extends TokenDependencies {
  settings: SessionSettings
  /** Addresses as people see them; functions, for a port may be chosen when the server listens. */
  baseUrl(): string
  consoleUrl(): string
  /** The network address a request came from, as the server saw it: no header is believed here. */
  addressOf(request: Request): string
  delegations: Delegations
}

/** The access tokens by which applications act for people, and which must follow what those may do. */
export interface Delegations {
  /** Go into the transaction that changes a person's role, standing or teams; who is disabled loses all approvals. */
  mark(userId: string, now: number, disabled?: boolean): Statement[]
  /** Follows what was marked, and waits until gateways know. */
  follow(actor: Actor, userId: string): Promise<void>
}
