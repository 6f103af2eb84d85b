/** The policy kinds that this version knows: one line each. */
import { audit } from './audit.ts'
import type { PolicyKind } from './kind.ts'

const kinds: readonly PolicyKind[] = [audit]

export const policyKinds: ReadonlyMap<string, PolicyKind> = new Map(kinds.map((kind) => [kind.kind, kind]))
