/** What the routes of people need from the rest of the control plane. */
import type { Settings } from '../config.ts'
import type { Statement } from '../store/statement.ts'
import type { Actor } from '../tokens/creation/minting.ts'
import type { TokenDependencies } from '../tokens/dependencies.ts'
import type { RelyingParty } from './identity-providers/relying-party.ts'
import type { SessionSettings } from './sessions/session.ts'

export interface MemberDependencies extends TokenDependencies {
  settings: SessionSettings & Pick<Settings, 'break_glass_owner'>
  relyingParty: RelyingParty
  /** Addresses as people see them; functions, for a port may be chosen when the server listens. */
  baseUrl(): string
  consoleUrl(): string
  /** The network address of the caller, as the server saw it. Headers are not believed. */
  addressOf(request: Request): string
  delegations: Delegations
}

/** Access tokens of applications that act for people. They must follow what the people may do. */
export interface Delegations {
  /** Part of the transaction that changes a person's role, status or teams. A disabled person loses all approvals. */
  mark(userId: string, now: number, disabled?: boolean): Statement[]
  /** Applies what was marked, and waits until gateways know. */
  follow(actor: Actor, userId: string): Promise<void>
}
